# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Checks of an image, which the suites image and arm64 share. The suite sets, before it reads this file:
#   folder    the folder of scripts/image
#   emulator  a static program that runs programs of the image's architecture, if this machine does not run them itself
#   compiler  the compiler for that architecture, if it is not gcc

image=${folder:?}/pmem-csi.tar root=$folder/root

is_small() {
	local kib
	kib=$(($(stat -c %s "$image") / 1024))
	echo "image: $kib KiB"
	[ "$kib" -le 30720 ]
}

# is_for ARCHITECTURE MACHINE: as OCI and as readelf name it. Libraries that a program names are there.
is_for() {
	local found name
	found=$(tar -xOf "$image" --wildcards 'blobs/sha256/*' | grep -ao '"architecture":"[^"]*"')
	echo "$found"
	[ "$found" = "\"architecture\":\"$1\"" ]
	# Other files are an error for readelf.
	{ find "$root" -type f -exec readelf -Whd {} + 2>/dev/null || true; } >"$folder/said"
	found=$(sed -n 's/^ *Machine: *//p' "$folder/said" | sort | uniq -c)
	echo "$found"
	[[ $found =~ ^\ *[0-9]+\ $2$ ]]
	sed -n 's/.*Shared library: \[\(.*\)\]$/\1/p' "$folder/said" | sort -u | while read -r name; do
		[ "$(find -L "$root/usr/lib" -name "$name" -type f)" ] || {
			echo "is missing: $name"
			return 1
		}
	done
}

# in_image COMMAND...: as in a pod, whose root is read-only: lvm makes /dev/mapper/control, even to say its version, which is not
# to be found in the image's files afterwards.
in_image() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare --mount bash -euc '
		mount --bind "$0" "$0"
		mount -o remount,bind,ro "$0"
		mount -t tmpfs tmpfs "$0/dev"
		[ ! "$1" ] || cp "$1" "$0/dev/emulator"
		exec chroot "$0" ${1:+/dev/emulator} "${@:2}"' "$root" "${emulator:-}" "$@"
}

# Each of our programs says its version, and what they execute finds its libraries.
programs_start() {
	local command
	while read -r command; do
		# shellcheck disable=SC2086 # words
		in_image $command >"$folder/said" 2>&1 || {
			echo "does not start: $command"
			cat "$folder/said"
			return 1
		}
	done <<-END
		/usr/local/bin/pmem-ns-init -version
		/usr/local/bin/pmem-vgm -version
		/usr/local/bin/pmem-csi-driver -version
		/usr/local/bin/scheduler-extender -version
		/usr/local/bin/csi-client -version
		/usr/sbin/lvm version
		/usr/sbin/mkfs.ext4 -V
		/usr/sbin/mkfs.xfs -V
		/usr/sbin/modprobe --version
		/usr/sbin/e2fsck -V
		/usr/sbin/xfs_db -V
	END
	# This one says its version with its usage only, and fails then.
	in_image /usr/sbin/tune2fs >"$folder/said" 2>&1 || true
	grep -q '^tune2fs [0-9]' "$folder/said" || {
		echo "does not start: tune2fs"
		cat "$folder/said"
		return 1
	}
}

holds_nothing_else() {
	local name found
	for name in sh bash dash perl python3 apt dpkg; do
		found=$(find "$root" -name "$name" -not -type d)
		[ -z "$found" ] || {
			echo "is there: $found"
			return 1
		}
	done
}

# A scanner for known defects finds each package there, by name and version.
packages_are_named() {
	local file
	for file in lvm2 e2fsprogs xfsprogs kmod libc6 libndctl6 libmbedtls21 liblzma5 base-files; do
		if ! grep -q '^Version: ' "$root/var/lib/dpkg/status.d/$file" || [ ! -s "$root/usr/share/doc/$file/copyright" ]; then
			echo "not described: $file"
			return 1
		fi
	done
}

# What SPDX says of it is well-formed and true.
is_described() {
	tests/tools/check-sbom "${image%.tar}.spdx.json" "$image" "$root"
}

# Nodes keep modules as they are or compressed. modprobe loads a library for that when it meets such a file.
modules_are_read() {
	local suffix file=module.ko status
	rm -f "$folder"/module.*
	cat >"$folder/module.c" <<-END
		__attribute__((section("__versions"), used)) static const struct {
			unsigned long crc;
			char name[56];
		} version = {0x1234, "a_symbol"};
	END
	"${compiler:-gcc}" -c -o "$folder/$file" "$folder/module.c"
	xz -k "$folder/$file"
	zstd -q -k "$folder/$file"
	for suffix in '' .xz .zst; do
		cp "$folder/$file$suffix" "$root/tmp"
		status=0
		in_image /usr/sbin/modprobe --dump-modversions "/tmp/$file$suffix" >"$folder/said" 2>&1 || status=$?
		rm "$root/tmp/$file$suffix"
		grep a_symbol "$folder/said" || {
			echo "is not read: $file$suffix, status $status"
			cat "$folder/said"
			return 1
		}
	done
	rm "$folder"/module.*
}

# same_bytes_again ARGUMENT...: of scripts/image
same_bytes_again() {
	scripts/image "$@" "$folder/again.tar"
	cmp "$image" "$folder/again.tar"
	rm "$folder"/again.{tar,spdx.json}
}
