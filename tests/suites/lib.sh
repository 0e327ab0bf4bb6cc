# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions that the suites share. A suite is run from the root of the tree.

# The size of the run: "daily" or "all".
# shellcheck disable=SC2034 # used by suites
size=${TEST_SIZE:-all}

# need_root SUITE WHY: ends a suite that cannot run without root as skipped.
need_root() {
	[ "$(id -u)" != 0 ] || return 0
	echo "SKIPPED: $1 NEEDS ROOT, $2" >&2
	echo "SUITE 0 0 1"
	exit 0
}

# build PRESET [TARGET]...: configures and builds, with one line of output unless that fails.
build() {
	local preset=$1 log start=$SECONDS
	shift
	mkdir -p build
	log=$(mktemp build/build.XXXXXX.log)
	if ! { cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}; } >"$log" 2>&1; then
		tail -n 60 "$log"
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
	echo "built $preset in $((SECONDS - start)) s"
}

# need_image_for ARCHITECTURE: pmem-csi.tar and root in the folder of scripts/image, made of the sources as they are.
need_image_for() {
	local folder=build/image${1:+-$1} sources
	local file=$folder/pmem-csi.tar
	mapfile -d '' sources < <(git ls-files -z common csi-client pmem-csi-driver pmem-ns-init pmem-vgm proto scheduler-extender \
		cmake CMakeLists.txt Containerfile scripts/build-root scripts/image scripts/image-root scripts/sbom scripts/sysroot)
	if [ ! -e "$file" ] || [ ! -d "$folder/root" ] || [ -n "$(find "${sources[@]}" -newer "$file" -print -quit)" ]; then
		scripts/image ${1:+--architecture "$1"}
	fi
}

# need_image: the image for this machine.
need_image() {
	need_image_for ''
}

# choose_list SUITE LIST...: sets chosen_names to the scenarios of the list whose turn it is, one list a day, and left_names to those of the
# others, which it prints. TEST_TURN stands for the number of the day.
choose_list() {
	local suite=$1 lists turn
	shift
	lists=("$@")
	turn=$((${TEST_TURN:-$(($(date +%s) / 86400))} % $#))
	read -ra chosen_names <<<"${lists[turn]}"
	unset "lists[turn]"
	read -ra left_names <<<"${lists[*]}"
	[ ${#left_names[@]} = 0 ] ||
		echo "SKIPPED: SCENARIOS OF OTHER DAYS, WHICH scripts/test $suite PLAYS WITH ANOTHER TEST_TURN (0 TO $(($# - 1)), NOT $turn): ${left_names[*]}" >&2
}

# is_late MINUTES: whether scripts/test has been running for so long already.
is_late() {
	[ $(($(date +%s) - ${SUITES_BEGAN:-$(date +%s)})) -ge $(($1 * 60)) ]
}

# halve_list SUITE MINUTES LISTS: where scripts/test is late, as on a slow machine that also builds Kubernetes, moves a half of chosen_names
# to left_names: the other half when the same of so many LISTS has its turn again.
halve_list() {
	local half turn=${TEST_TURN:-$(($(date +%s) / 86400))}
	is_late "$2" || return 0
	half=$(((${#chosen_names[@]} + 1) / 2))
	echo "SKIPPED: HALF OF THE LIST OF $1, SINCE scripts/test RUNS FOR $2 MINUTES ALREADY; scripts/test $1 PLAYS IT" >&2
	if [ $((turn / $3 % 2)) = 0 ]; then
		left_names+=("${chosen_names[@]:half}")
		chosen_names=("${chosen_names[@]:0:half}")
	else
		left_names+=("${chosen_names[@]:0:half}")
		chosen_names=("${chosen_names[@]:half}")
	fi
}

# count_left: counts left_names as skipped in the closing line of a suite, which comes in with all that it prints.
count_left() {
	awk -v left="${#left_names[@]}" '/^SUITE / { $4 += left } { print; fflush() }'
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

# count_ctest LOG: prints how many passed, failed and were skipped, as ctest's log says. The cases that check reports count, and
# each test of another kind as one.
count_ctest() {
	awk '
		/^[0-9]+\/[0-9]+ Testing: / { counted = seen = 0 }
		/^[0-9]+%: Checks: / { gsub(",", ""); cases += $3; seen += $5 + $7; counted = 1 }
		# ctest writes "Test Passed." of a program that is missing, too
		/^Unable to find executable: / { bad++ }
		/^Test Passed\.$/ { if (!counted) cases++ }
		# a program can fail after its cases passed: a leak is found at its end
		/^Test Failed\.$/ { if (!seen) { cases++; seen = 1 } bad += seen }
		/^skipped: / { skipped++; counted = 1 }
		END { print cases - bad, bad + 0, skipped + 0 }' "$1"
}

# run_ctest PRESET [--without REGEX] [CTEST-ARGUMENT]...: runs tests and prints the closing line of a suite. The tests that failed
# are repeated once, one at a time; those that pass then are printed as flaky. A REGEX that leaves nothing out is an error.
run_ctest() {
	local preset=$1 dir=build/$1/Testing/Temporary status=0 names passed failed skipped still=0
	shift
	if [ "${1:-}" = --without ]; then
		ctest --preset "$preset" -N -R "$2" | grep -q '^Total Tests: [1-9]' || {
			echo "failed: no test has a name like $2, which is to be left out"
			echo "SUITE 0 1 0"
			return 1
		}
		set -- -E "${@:2}"
	fi
	# half of the time tests wait for the disk
	ctest --preset "$preset" -j "$(($(nproc) * 2))" --no-tests=error "$@" || status=$?
	read -r passed failed skipped < <(count_ctest "$dir/LastTest.log")
	if [ "$status" != 0 ] && [ -s "$dir/LastTestsFailed.log" ]; then
		names=$(cut -d : -f 2 "$dir/LastTestsFailed.log")
		status=0
		ctest --preset "$preset" --rerun-failed || status=$?
		read -r _ still _ < <(count_ctest "$dir/LastTest.log")
		if [ "$status" = 0 ]; then
			echo "FLAKY ${names//$'\n'/$'\n'FLAKY }"
		else
			{ grep -vxFf <(cut -d : -f 2 "$dir/LastTestsFailed.log") <<<"$names" || true; } | sed 's/^/FLAKY /'
		fi
		[ "$still" -le "$failed" ] || failed=$still
	elif [ "$status" != 0 ]; then
		still=$failed
	fi
	[ "$status" = 0 ] || [ "$still" != 0 ] || failed=$((failed + 1)) still=1
	echo "SUITE $((passed + failed - still)) $still $skipped $((failed - still))"
	return "$status"
}

# sum_up PARTS: adds up the closing lines of so many parts of a suite, which come in with all that they print.
sum_up() {
	awk -v parts="$1" '
		/^SUITE / { for (i = 2; i <= 5; i++) sum[i] += $i; seen++; next }
		{ print; fflush() }
		END {
			sum[3] += parts - seen
			print "SUITE", sum[2] + 0, sum[3] + 0, sum[4] + 0, sum[5] + 0
			exit sum[3] > 0
		}'
}
