# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Power cuts and kills at any point of volumes' lives, by tests/machine/torture/guest: CUTS of the power that the machine survives,
# KILLS, AGAIN of drivers that recover, and with CUT=last one that ends it, after which the next boot (BOOT=2 and on) goes on. SEED
# says at which points, or AT at which one only; OF of which kinds volumes are, and MODE=direct that devices are namespaces. With
# PROVE=1 a driver without fsync follows, which must be found out.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"

plan pools-are-there
# a boot that ends with a cut says nothing at its end
[ -n "${CUT:-}" ] || plan torture-runs

pools() {
	if [ "${MODE:-lvm}" = direct ]; then prepare_memory; else init_chain 100; fi
	[ "${BOOT:-1}" != 1 ] || note_kept
}

torture() {
	load_modules dm-flakey
	"$VM_TESTS/../torture/guest" --bin "$BUILD_DIR/bin" --cuts "${CUTS:-0}" --kills "${KILLS:-0}" --seed "${SEED:-1}" \
		--mode "${MODE:-lvm}" ${KINDS:+--kinds "$KINDS"} ${OF:+--of "$OF"} ${AT:+--at "$AT"} ${AGAIN:+--again "$AGAIN"} ${CUT:+--last} \
		${PROVE:+--prove "$BUILD_DIR/tests/machine/vm/libnosync.so"}
}

prove pools-are-there pools
if torture; then
	result torture-runs ok
else
	result torture-runs fail "it ended early"
fi
