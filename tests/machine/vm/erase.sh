# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Four deleted volumes of 1 GiB are overwritten at a time, each a namespace: what needs no worker answers, and another
# volume is made and used. First slowly, so that all of it happens meanwhile; then a restart goes on as fast as it can.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

metrics_port=10010

start_with() {
	driver_start_with -deviceManager=direct "-metricsListen=127.0.0.1:$metrics_port" "$@"
}

# Sets metrics.
read_metrics() {
	local connection
	exec {connection}<>"/dev/tcp/127.0.0.1/$metrics_port"
	printf 'GET /metrics HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n' >&"$connection"
	metrics=$(cat <&"$connection")
	exec {connection}>&-
	[[ $metrics == 'HTTP/1.1 200 '* ]]
}

# metric_is NAME VALUE [LABEL]: by the metrics that were read; LABEL is the last one.
metric_is() {
	local pattern=$'\n'"$1\\{[^}]*${3:-}\\} $2"$'\n'
	[[ $metrics =~ $pattern ]]
}

# So many files say that a volume is being erased.
erasing() {
	local files=("$state"/*.erasing)
	[ -e "${files[0]}" ] || files=()
	echo "${#files[@]}"
}

erases() {
	equal 'number of volumes that are erased' "$(erasing)" "$1"
}

# The answers that must never wait.
answers() {
	local metrics
	is_ready
	csi-client -timeout 5s capacity >/dev/null
	read_metrics
	metric_is pmem_erasures_running '[0-4]'
}

make_four() {
	local n
	prepare_memory
	start_with -eraseBandwidth=16Mi
	available >"$scratch/initial"
	for n in 1 2 3 4; do
		create "large-$n" 1Gi ext4 >>"$scratch/large"
	done
	available >"$scratch/left"
}

delete_four() {
	local id
	while read -r id; do
		csi delete "$id"
	done <"$scratch/large"
	erases 4
	await 30 four_run
	equal 'list' "$(listed_ids)" ''
	equal 'the capacity' "$(available)" "$(<"$scratch/left")"
}

four_run() {
	local metrics
	read_metrics
	metric_is pmem_erasures_running 4 && metric_is pmem_volumes 4 'phase="erasing"'
}

others_go_on() {
	local id
	answers
	id=$(create other 32Mi ext4)
	stage "$id"
	publish "$id"
	dax-check -size 1Mi -seed 2 write "$(target_of "$id")/file"
	answers
	refused ABORTED -size 1Gi -fs ext4 create large-1
	erases 4
}

restart_goes_on() {
	driver_stop
	erases 4
	start_with
	await 30 four_run
}

answered_all_the_time() {
	local id rounds=0
	while [ "$(erasing)" != 0 ]; do
		answers
		rounds=$((rounds + 1))
	done
	echo "$rounds rounds"
	[ "$rounds" -gt 0 ]
	id=$(listed_ids)
	dax-check -size 1Mi -seed 2 verify "$(target_of "$id")/file"
	unpublish "$id"
	unstage "$id"
	delete "$id"
	equal 'the capacity' "$(available)" "$(<"$scratch/initial")"
}

prove four-large-volumes-are-made make_four
prove four-are-erased-at-a-time delete_four
prove others-go-on others_go_on
prove restart-goes-on-erasing restart_goes_on
prove all-answer-until-the-end answered_all_the_time
cat "$driver_log"
