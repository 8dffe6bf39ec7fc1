#!/bin/sh
# Makes a Debian package of what `make install PREFIX=/usr DESTDIR=ROOT` has put into ROOT:
# build.sh ROOT VERSION DATE MAINTAINER. The package comes beside ROOT.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$1" && pwd)
version=$2 date=$3 maintainer=$4
arch=$(dpkg --print-architecture)
doc=$root/usr/share/doc/pegfs
jiti=$root/usr/lib/pegfs/node_modules/jiti

# Licences and manuals have one place in a Debian system.
{
    sed "s/@YEAR@/${date%%-*}/" "$here/copyright"
    sed -e 's/^$/./' -e 's/^/ /' "$jiti/LICENSE"
} >"$doc/copyright"
rm -rf "$jiti/LICENSE" "$jiti/README.md" "$root/usr/lib/pegfs/node_modules/.bin" \
    "$root/usr/lib/pegfs/node_modules/.package-lock.json" "$root/usr/lib/pegfs/package-lock.json"

printf 'pegfs (%s) bookworm; urgency=medium\n\n  * Made from its repository by "make deb"; the history is there.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date -u -R -d "$date")" | gzip -9n >"$doc/changelog.gz"
gzip -9nf "$root/usr/share/man/man1/pegfs.1"
rm "$root/usr/share/man/man8/mount.fuse.pegfs.8"
ln -s ../man1/pegfs.1.gz "$root/usr/share/man/man8/mount.fuse.pegfs.8.gz"

strip --strip-unneeded --remove-section=.comment --remove-section=.note \
    "$root/usr/bin/pegfs" "$root/usr/lib/pegfs/host/warden/warden" "$root/usr/lib/pegfs/host/enter/enter"
chmod 755 "$root/usr/lib/pegfs/host/warden/warden" "$root/usr/lib/pegfs/host/enter/enter"
find "$root" -type d -exec chmod 755 {} +
find "$root/usr/lib/pegfs" "$root/usr/share" -type f ! -name warden ! -name enter ! -name jiti-cli.mjs ! -name "*.sh" -exec chmod 644 {} +
chmod 755 "$jiti/lib/jiti-cli.mjs"

mkdir -p "$root/usr/share/lintian/overrides"
cat >"$root/usr/share/lintian/overrides/pegfs" <<'EOF'
# No library of this system is to be mapped in the containers that this program enters.
pegfs: shared-library-lacks-prerequisites [usr/lib/pegfs/host/enter/enter]
EOF
chmod 644 "$root/usr/share/lintian/overrides/pegfs"

# The libraries, as dpkg-shlibdeps finds them; it wants a source package around it.
work=$root.work
rm -rf "$work" && mkdir -p "$work/debian"
printf 'Source: pegfs\n\nPackage: pegfs\nArchitecture: %s\n' "$arch" >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps --warnings=0 -O "$root/usr/bin/pegfs" "$root/usr/lib/pegfs/host/warden/warden" |
    sed 's/^shlibs:Depends=//')
rm -rf "$work"

mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<EOF
Package: pegfs
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends, nodejs (>= 18)
Recommends: fuse3, python3
Section: utils
Priority: optional
Description: tools of agents as a file system
 pegfs overlays directories of tools into one mounted tree, writes the texts
 that an agent or a person needs to understand a tool, and runs the tool when
 JSON is written to its "call" file. Who uses it needs ls, cat and echo.
EOF
(cd "$root" && find usr lib sbin -type f -exec md5sum {} + | LC_ALL=C sort -k 2) >"$root/DEBIAN/md5sums"
chmod 644 "$root/DEBIAN/control" "$root/DEBIAN/md5sums"

package=$(dirname "$root")/pegfs_${version}_$arch.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
echo "$package"
