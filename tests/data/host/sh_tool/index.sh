#!/bin/bash
# Each way is one thing that a script does.
case $PARAM_how in
text) echo "Hello, $PARAM_name!" ;;
json) cat ;;
types) echo "$PARAM_number $PARAM_flag $PARAM_list ${PARAM_nothing-unset}" ;;
quotes) printf '%s' "$PARAM_name" ;;
exported) printenv PARAM_name ;;
secret) echo "${#PARAM_token}"; if env | grep -q s3cret || grep -qz s3cret /proc/$$/environ; then echo leaked; fi; tr '\0' ' ' < /proc/$$/cmdline | grep -c s3cret; sh -c 'echo ${PARAM_token-hidden}' ;;
fail) echo partial; echo "no such table" >&2; exit 3 ;;
silent) exit 1 ;;
updates) echo one >&3; echo two >&3; echo done ;;
stderr) echo "to the log" >&2; echo fine ;;
background) (sleep 61; echo late) & echo at once ;;
ignore) echo running >&3; sleep 62 & sleep 63 ;;
where) basename "$TOOL_DIR"; echo "$TOOL_CALL_ID"; [ -e "${BASH_SOURCE[0]%/*}/data.txt" ] && echo found; echo "${BASH_ENV-clean}" ;;
large) head -c 3000000 /dev/zero | tr '\0' x ;;
long) echo "${#PARAM_name}"; sh -c 'echo ${PARAM_name-hidden}' ;;
esac
