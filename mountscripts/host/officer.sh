#!/bin/sh
# One daemon on the host, for one user, whose containers get all of /officer as it is here:
#
#     officer.sh up ada@example.org
#     podman run -v /officer:/officer:rslave IMAGE COMMAND...       (docker run takes the same)
#     officer.sh down                                               (down --lazy: also while it is in use)
#
#     /officer/tools        the tools of all, overlaid by the user's      pegfs, see below
#     /officer/user         DATA_PATH/USER                                read-write
#     /officer/user/tools   DATA_PATH/USER/tools                          read-only
#     /officer/data         OFFICER_DATA, where emails.db is              read-write
#
# `run USER` is `up` in the foreground, for systemd (mountscripts/systemd/officer@.service).
#
# DATA_PATH      where tools/ and each user's directory are (default: /data)
# OFFICER_DATA   default: DATA_PATH/USER/data
# OFFICER_ROOT   default: /officer. In the container it has to be the same path, for tools run here, on the host:
#                what a container calls /officer/user/x has to be that file here, too
# PEGFS_OPTIONS  further options of `pegfs mount`, as words. Without --call-uid or --run-in among them all calls run
#                as the owner of DATA_PATH/USER, whoever calls in the container: root there is nobody here
#
# /officer is a shared mount, so that what comes and goes here comes and goes in containers that have it as rslave,
# in whatever order they and this are started. `up` after `up`, or after the daemon was killed, mends what is broken.
set -eu

root=${OFFICER_ROOT:-/officer}
data=${DATA_PATH:-/data}

fail() {
    echo "officer.sh: $*" >&2
    exit 1
}

usage() {
    echo "usage: officer.sh up USER | run USER | down [--lazy]" >&2
    exit 2
}

# Shows a directory at another place; says nothing where it is there already.
bind() {
    mkdir -p "$2"
    mountpoint -q "$2" || mount --bind "$1" "$2"
}

bind_all() {
    [ -d "$data/$user/tools" ] || install -d -o "$owner" -g "$group" "$data/$user/tools"
    [ -d "$own_data" ] || install -d -o "$owner" -g "$group" "$own_data"
    bind "$root" "$root"
    mount --make-shared "$root"
    bind "$data/$user" "$root/user"
    bind "$data/$user/tools" "$root/user/tools"
    mount -o remount,bind,ro "$root/user/tools"
    bind "$own_data" "$root/data"
    [ "$(stat -c %i "$root/user")" = "$(stat -c %i "$data/$user")" ] ||
        fail "$root is another user's: run 'officer.sh down' first"
}

# mountpoint(1) has to look at the directory, which fails where the daemon was killed; the table has it still.
is_mounted() {
    [ "$(findmnt -n -o FSTYPE --mountpoint "$root/tools" | tail -n 1)" = fuse.pegfs ]
}

# up and run: $1 is --foreground or nothing.
up() {
    [ -d "$data/$user" ] || fail "there is no directory $data/$user: make it, and give it to the user as whom calls are to run"
    owner=$(stat -c %u "$data/$user") group=$(stat -c %g "$data/$user")
    own_data=${OFFICER_DATA:-$data/$user/data}
    options=${PEGFS_OPTIONS-}
    case " $options " in
    *" --call-uid"* | *" --run-in"*) ;;
    *)
        [ "$owner" != 0 ] || fail "$data/$user is root's, and calls never run as root: give it to a user, or say --call-uid"
        options="--call-uid $owner --call-gid $group $options"
        ;;
    esac
    bind_all
    is_mounted || mkdir -p "$root/tools"
    if [ -z "$1" ] && is_mounted && ls "$root/tools" >/dev/null 2>&1; then
        return
    fi
    export OFFICER_USER_ROOT="${OFFICER_USER_ROOT:-$root/user}" OFFICER_EMAIL_DB="${OFFICER_EMAIL_DB:-$root/data/emails.db}"
    # shellcheck disable=SC2086 # words
    exec pegfs mount $1 --tools "$data/tools:$data/$user/tools" $options "$root/tools"
}

down() {
    if is_mounted; then
        pegfs umount ${1:+--lazy} "$root/tools"
    fi
    for place in "$root/user/tools" "$root/user" "$root/data" "$root"; do
        # A file system of its own at /officer is somebody else's; what bind_all makes there shows a directory.
        if mountpoint -q "$place" && { [ "$place" != "$root" ] || [ "$(findmnt -n -o FSROOT --mountpoint "$root" | tail -n 1)" != / ]; }; then
            umount ${1:+-l} "$place"
        fi
    done
}

case "${1-} $#" in
"up 2" | "run 2")
    user=$2
    case $user in
    "" | .* | */*) fail "'$user' is no name of a directory in $data" ;;
    esac
    if [ "$1" = run ]; then up --foreground; else up ""; fi
    ;;
"down 1") down "" ;;
"down 2")
    [ "$2" = --lazy ] || usage
    down --lazy
    ;;
*) usage ;;
esac
