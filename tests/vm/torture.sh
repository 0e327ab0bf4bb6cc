# shellcheck shell=bash
# Power cuts and kills at any point of volumes' lives, by tests/torture/guest: CUTS of the power that the machine survives,
# KILLS, and with CUT=last one that ends it, after which the next boot (BOOT=2 and on) goes on. SEED says at which points.
# With PROVE=1 a driver without fsync follows, which must be found out; the pools are not used any more after that.
# shellcheck source=tests/vm/lib.sh
. "$VM_TESTS/lib.sh"
leaks_are_meant

plan pools-are-there
# a boot that ends with a cut says nothing at its end
[ -n "${CUT:-}" ] || plan torture-runs

pools() {
	[ "${BOOT:-1}" != 1 ] || labels
	init_chain 100
}

torture() {
	load_modules dm-flakey
	"$VM_TESTS/../torture/guest" --bin "$BUILD_DIR/bin" --cuts "${CUTS:-0}" --kills "${KILLS:-0}" --seed "${SEED:-1}" \
		${CUT:+--last} ${PROVE:+--prove "$BUILD_DIR/tests/vm/libnosync.so"}
}

prove pools-are-there pools
if torture; then
	result torture-runs ok
else
	result torture-runs fail "it ended early"
fi
