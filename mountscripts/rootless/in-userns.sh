#!/bin/sh
# Runs a command that sees the tools, without root, a container or fusermount3: in a user namespace.
#
#     PI_TOOLS_DIRS=$HOME/tools in-userns.sh COMMAND...
#
# PEGFS_MOUNT    where the command sees them, an empty directory (default: /officer/tools)
# PEGFS_OPTIONS  further options of `pegfs mount`, as words
#
# The command runs as you, with your files and your network; only it and what it starts see the mount. When it
# ends, all that it started ends too, and the mount with it. Others cannot look into the mount, root neither: it is
# the kernel's rule for mounts of a user namespace.
set -eu

mount=${PEGFS_MOUNT:-/officer/tools}

fail() {
    echo "in-userns.sh: $*" >&2
    exit 1
}

[ $# -gt 0 ] || fail "no command was given"
[ -d "$mount" ] || fail "there is no directory $mount: make it, or name another one with PEGFS_MOUNT"

# The rights of root that a user has in a namespace of their own are passed on (--keep-caps) until it is mounted,
# and then dropped. A pid namespace ends everything with its first process, which lets pegfs clear its state away.
# It is made in a second step, for making a user namespace forgets with whom a process is to die.
export PEGFS_MOUNT="$mount" PEGFS_OPTIONS="${PEGFS_OPTIONS-}"
# What runs in the background has neither the terminal nor Ctrl-C, unless it is given both.
exec 3<&0
# shellcheck disable=SC2016 # for the inner shell
env --default-signal=INT,QUIT unshare --user --map-current-user --keep-caps --mount -- setpriv --pdeathsig KILL -- \
    unshare --pid --fork --kill-child --mount-proc -- sh -c '
    # The state of a mount is found by its path, which somebody else may have in a namespace of his own: a private place.
    for state in "${XDG_RUNTIME_DIR:-/dev/shm}/pegfs" "/dev/shm/pegfs-$(id -u)" /run/pegfs; do
        mkdir -p "$state" 2>/dev/null && mount -t tmpfs -o mode=711 none "$state"
    done
    # shellcheck disable=SC2086
    ready=$(pegfs mount --foreground --log-level warning --ready-fd 3 $PEGFS_OPTIONS "$PEGFS_MOUNT" 3>&1 >&2 &)
    [ "$ready" = READY ] || exit 1
    setpriv --ambient-caps=-all --inh-caps=-all --bounding-set=-all -- "$@"
    status=$? tries=0 children=some
    kill -TERM -1
    while [ -n "$children" ] && [ $tries -lt 50 ]; do
        sleep 0.1
        tries=$((tries + 1))
        read -r children </proc/1/task/1/children || :
    done
    exit $status' sh "$@" <&3 3<&- &
inner=$!

# unshare(1) does not listen to SIGTERM. Ctrl-C reaches the command by itself.
trap 'kill -KILL $inner' TERM HUP
trap : INT
status=0
wait $inner || status=$?
while kill -0 $inner 2>/dev/null; do
    status=0
    wait $inner || status=$?
done
exit $status
