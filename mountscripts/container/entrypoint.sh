#!/bin/sh
# The entry point of a container that has pegfs in it: mounts the tools, then becomes the command.
#
#     podman run --init --device /dev/fuse --cap-add SYS_ADMIN IMAGE COMMAND...
#
# PEGFS_MOUNT    where the tools are shown (default: /officer/tools)
# PI_TOOLS_DIRS  where they are (default: /officer/tools:/officer/user/tools). The mount may cover one of them.
# PEGFS_OPTIONS  further options of `pegfs mount`, as words
# PEGFS_USER     UID:GID of the command, where the container starts as root (default: root)
#
# Mounting takes CAP_SYS_ADMIN. The command does not get it: pegfs alone keeps it. That takes setpriv of util-linux,
# and CAP_SETPCAP, which containers have where it was not dropped. docs/containers.md has it all.
set -eu

mount=${PEGFS_MOUNT:-/officer/tools}
: "${PI_TOOLS_DIRS:=/officer/tools:/officer/user/tools}"
export PI_TOOLS_DIRS PEGFS_MOUNT="$mount"

fail() {
    echo "pegfs entrypoint: $*" >&2
    exit 1
}

# Whether this process has the capability of that number (capabilities(7)).
has_capability() {
    effective=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
    [ $((0x$effective >> $1 & 1)) -eq 1 ]
}
SETPCAP=8 SYS_ADMIN=21

[ $# -gt 0 ] || fail "no command was given: put it behind the name of the image"
[ -d "$mount" ] || mkdir -p "$mount" || fail "there is no directory $mount, and it cannot be made: make it in the image"

# The host may have mounted it: docs/containers.md, 3.
if ! grep -q " $mount fuse.pegfs " /proc/self/mounts || ! ls "$mount" >/dev/null 2>&1; then
    # It says READY on descriptor 3 once the tree can be used, and closes it. What it logs is in the container's log.
    # shellcheck disable=SC2086 # PEGFS_OPTIONS has words
    ready=$(pegfs mount --foreground --log-level warning --ready-fd 3 ${PEGFS_OPTIONS-} "$mount" 3>&1 >&2 &)
    [ "$ready" = READY ] || fail "the tools are not mounted; docs/containers.md says what each message means"
fi

# From here on nobody else needs the right to mount.
set -- -- "$@"
if [ -n "${PEGFS_USER-}" ]; then
    set -- "--reuid=${PEGFS_USER%%:*}" "--regid=${PEGFS_USER##*:}" --clear-groups "$@"
fi
if has_capability $SYS_ADMIN; then
    set -- --ambient-caps=-sys_admin --inh-caps=-sys_admin "$@"
    if has_capability $SETPCAP; then
        set -- --bounding-set=-sys_admin "$@"
    elif [ "$(id -u)" -eq 0 ] && [ -z "${PEGFS_USER-}" ]; then
        fail "the command would keep CAP_SYS_ADMIN: add --cap-add SETPCAP, or say as whom it runs with PEGFS_USER"
    fi
elif [ "$1" = -- ]; then
    shift
    exec "$@"
fi
exec setpriv "$@"
