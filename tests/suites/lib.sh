# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the suites share. A suite is run from the root of the tree.

# build PRESET [TARGET]...: configures and builds, quietly unless that fails.
build() {
	local preset=$1 log
	shift
	mkdir -p build
	log=$(mktemp build/build.XXXXXX.log)
	if ! { cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}; } >"$log" 2>&1; then
		tail -n 60 "$log"
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

# need_image: build/image/pmem-csi.tar and build/image/root, made of the sources as they are.
need_image() {
	local file=build/image/pmem-csi.tar sources
	mapfile -d '' sources < <(git ls-files -z common csi-client pmem-csi-driver pmem-ns-init pmem-vgm proto \
		scheduler-extender cmake CMakeLists.txt Containerfile scripts/image scripts/image-root scripts/sbom)
	if [ ! -e "$file" ] || [ ! -d build/image/root ] || [ -n "$(find "${sources[@]}" -newer "$file" -print -quit)" ]; then
		scripts/image
	fi
}

n_passed=0 n_failed=0

# check NAME COMMAND...: counts a case, which passes if no step of the command fails. The command runs in a subshell, so what
# later cases need is assigned outside.
check() {
	local name=$1 status
	shift
	# Not in a condition: there bash would go on after a failing step.
	set +e
	(
		set -eE
		# A failure within $() is one only if the step that it is a part of fails.
		trap '[ "$BASH_SUBSHELL" -gt 1 ] || echo "failed: $BASH_COMMAND"' ERR
		"$@"
	) 2>&1
	status=$?
	set -e
	if [ "$status" = 0 ]; then
		n_passed=$((n_passed + 1))
	else
		n_failed=$((n_failed + 1))
		echo "FAIL $name"
	fi
}

# finds_nothing COMMAND...: a grep or the like whose status is 1, as that of a search that failed is not.
finds_nothing() {
	local status=0
	"$@" || status=$?
	[ "$status" = 1 ]
}

# finish: prints the closing line of a suite of such cases; fails if one of them did.
finish() {
	echo "SUITE $n_passed $n_failed 0"
	[ "$n_failed" = 0 ]
}

# run_ctest PRESET [CTEST-ARGUMENT]...: runs tests and prints the closing line of a suite. What counts are the cases
# that check reports, and each test of another kind as one.
run_ctest() {
	local preset=$1 log=build/$1/Testing/Temporary/LastTest.log status=0
	shift
	# half of the time tests wait for the disk
	ctest --preset "$preset" -j "$(($(nproc) * 2))" --no-tests=error "$@" || status=$?
	awk '
		/^[0-9]+\/[0-9]+ Testing: / { counted = seen = 0 }
		/^[0-9]+%: Checks: / { gsub(",", ""); cases += $3; seen += $5 + $7; counted = 1 }
		# ctest writes "Test Passed." of a program that is missing, too
		/^Unable to find executable: / { bad++ }
		/^Test Passed\.$/ { if (!counted) cases++ }
		# a program can fail after its cases passed: a leak is found at its end
		/^Test Failed\.$/ { if (!seen) { cases++; seen = 1 } bad += seen }
		/^skipped: / { skipped++; counted = 1 }
		END { print "SUITE", cases - bad, bad + 0, skipped + 0 }' "$log"
	return "$status"
}
