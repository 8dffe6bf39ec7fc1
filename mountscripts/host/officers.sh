#!/bin/sh
# One daemon on the host for all users, each of whom has a tree of his own below /run/officer:
#
#     officers.sh up
#     podman run $(officers.sh args ada@example.org) IMAGE COMMAND...       (docker run takes the same)
#     officers.sh down                                                      (down --lazy: also while it is in use)
#
#     /officer/tools        /run/officer/USER       the tools of all, overlaid by the user's
#     /officer/user         DATA_PATH/USER          read-write
#     /officer/user/tools   DATA_PATH/USER/tools    read-only
#     /officer/data         DATA_PATH/USER/data     where emails.db is; read-write
#
# A user is a directory of DATA_PATH named by an e-mail address. New ones have their tree at once. A container has what
# `args` tells, and so one user's tree and none of the others'.
#
# DATA_PATH      where tools/ and each user's directory are (default: /data)
# OFFICER_RUN    default: /run/officer
# PEGFS_OPTIONS  further options of `pegfs mount`, as words (default: --run-in caller, so that each tool runs in the
#                container that calls it, with its files, ids and limits, which needs Node or Python there)
#
# What is bound is a directory in the mount, not the mount point: when the supervisor of pegfs has been killed, or after
# `down`, a container has to be started anew to see the next mount. A crash or a reload of the server is not noticed.
set -eu

run=${OFFICER_RUN:-/run/officer}
data=${DATA_PATH:-/data}

fail() {
    echo "officers.sh: $*" >&2
    exit 1
}

usage() {
    echo "usage: officers.sh up | args USER | down [--lazy]" >&2
    exit 2
}

is_mounted() {
    [ "$(findmnt -n -o FSTYPE --mountpoint "$run" | tail -n 1)" = fuse.pegfs ]
}

case "${1-} $#" in
"up 1")
    if is_mounted && ls "$run" >/dev/null 2>&1; then
        exit 0
    fi
    [ -d "$data" ] || fail "there is no directory $data: make it, or name another one with DATA_PATH"
    is_mounted || mkdir -p "$run"
    # shellcheck disable=SC2086 # words
    exec pegfs mount --data "$data" ${PEGFS_OPTIONS---run-in caller} "$run"
    ;;
"args 2")
    [ -d "$data/$2" ] || fail "there is no directory $data/$2: make it, and tools/ and data/ in it"
    [ -d "$run/$2" ] || fail "there is no tree $run/$2: has 'officers.sh up' been run, and is the name an e-mail address?"
    for directory in tools data; do
        [ -d "$data/$2/$directory" ] || fail "there is no directory $data/$2/$directory: make it"
    done
    echo "-v $run/$2:/officer/tools -v $data/$2:/officer/user -v $data/$2/tools:/officer/user/tools:ro -v $data/$2/data:/officer/data"
    ;;
"down 1" | "down 2")
    case "${2-}" in
    "" | --lazy) ;;
    *) usage ;;
    esac
    if is_mounted; then
        pegfs umount ${2:+--lazy} "$run"
    fi
    ;;
*) usage ;;
esac
