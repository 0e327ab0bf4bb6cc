# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The Go driver 1.1.0 itself (GO_DRIVER), which makes volumes; ours in its place, beside it, and back. A process writes to a volume of
# each all the time. Snapshots of ours, and a volume of which the growth was cut off, are there while the Go driver serves. What the Go driver leaves in its older releases is made by hand in takeover.sh.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/handover_steps.sh
. "$VM_TESTS/handover_steps.sh"
plan_whole_script

go_log=$scratch/go.log

# The folder of its socket is made by whoever starts it.
go_start() {
	mkdir -p /run/pmem-csi
	"$GO_DRIVER" -mode=node -deviceManager=lvm -pmemPercentage=60 -nodeid=lab -v=4 "-endpoint=$CSI_ENDPOINT" \
		"-statePath=$state" -drivername=pmem-csi.intel.com >>"$go_log" 2>&1 </dev/null &
	echo $! >"$scratch/go.pid"
	await 400 go_answers
}

go_answers() {
	[[ $(csi-client -timeout 5s info) == *v1.1.0* ]]
}

go_is_there() {
	! is_gone "$(<"$scratch/go.pid")"
}

go_stop() {
	kill -TERM "$(<"$scratch/go.pid")"
	await 60 is_gone "$(<"$scratch/go.pid")"
}

go_makes_volumes() {
	initialise_labels_by_hand
	mkdir -m 0750 "$state"
	go_start
	note_kept
	make go-ext4 ext4
	make go-fileio ext4 -parameter usage=FileIO
	make go-idle ext4 -parameter eraseafter=false
	dax-check -size 4Mi -seed 1 write "$(target_of "$(id go-idle)")/mapped"
	unpublish "$(id go-idle)"
	unstage "$(id go-idle)"
	csi -fs ext4 -parameter csi.storage.k8s.io/ephemeral=true -parameter size=16Mi publish csi-1f0c9a '' "$(target_of csi-1f0c9a)"
	dax-check -size 4Mi -seed 2 write "$(target_of csi-1f0c9a)/mapped"
	start_writer go-ext4
	start_writer go-fileio
	listed_ids | sort >"$scratch/ids"
	equal 'number of volumes' "$(wc -l <"$scratch/ids")" 4
}

ours_waits() {
	driver_launch
	await 60 is_gone "$(driver_pid)"
	logged 'is in use by another server, which has to be stopped first'
	go_answers
	equal 'the list' "$(listed_ids | sort)" "$(<"$scratch/ids")"
	written go-ext4 go-fileio
}

ours_takes_over() {
	go_stop
	chain_facts >"$scratch/before"
	init_chain 60
	chain_facts >"$scratch/after"
	cmp "$scratch/before" "$scratch/after"
	driver_start
	equal 'the list' "$(listed_ids | sort)" "$(<"$scratch/ids")"
	written go-ext4 go-fileio
	stage "$(id go-ext4)"
	publish "$(id go-ext4)"
	equal 'number of mounts' "$(mounts_of "$(target_of "$(id go-ext4)")" | wc -l)" 1
	stage "$(id go-idle)"
	publish "$(id go-idle)"
	dax-check -size 4Mi -seed 1 verify "$(target_of "$(id go-idle)")/mapped"
	dax-check -size 4Mi -seed 2 verify "$(target_of csi-1f0c9a)/mapped"
	refused FAILED_PRECONDITION delete "$(id go-ext4)"
	csi unpublish csi-1f0c9a "$(target_of csi-1f0c9a)"
	fails test -e "$(target_of csi-1f0c9a)"
}

ours_makes_its_own() {
	make our-ext4 ext4
	make our-xfs xfs -size 320Mi
	dax-check -size 4Mi -seed 3 write "$(target_of "$(id our-xfs)")/mapped"
	start_writer our-ext4
	unpublish "$(id go-idle)"
	unstage "$(id go-idle)"
	delete "$(id go-idle)"
	written go-ext4 go-fileio our-ext4
}

# The way back in disorder: our driver was not ended.
go_pushes_ours_aside() {
	local before=$SECONDS
	go_start
	await 30 is_gone "$(driver_pid)"
	echo "ended after $((SECONDS - before)) s"
	logged 'another driver has taken the CSI socket'
	go_answers
	written go-ext4 go-fileio our-ext4
}

go_serves_all() {
	listed_ids | sort >"$scratch/ids"
	equal 'the list' "$(<"$scratch/ids")" "$(for name in go-ext4 go-fileio our-ext4 our-xfs; do id "$name"; done | sort)"
	stage "$(id our-ext4)"
	publish "$(id our-ext4)"
	dax-check -size 4Mi -seed 3 verify "$(target_of "$(id our-xfs)")/mapped"
	unpublish "$(id our-xfs)"
	unstage "$(id our-xfs)"
	stage "$(id our-xfs)"
	publish "$(id our-xfs)"
	dax-check -size 4Mi -seed 3 verify "$(target_of "$(id our-xfs)")/mapped"
	make go-later ext4
	written go-ext4 go-fileio our-ext4
}

# Of a volume of each driver, alone and as a group, and a volume that is a clone.
ours_takes_snapshots() {
	go_stop
	driver_start
	take go-ext4
	take our-ext4
	take_group pair go-ext4 our-ext4
	make our-clone ext4 -source "$(id our-ext4)"
	numbers_are_whole "$(target_of "$(id our-clone)")/numbers" "$(<"$scratch/lines.our-ext4")"
	written go-ext4 go-fileio our-ext4
}

ours_dies_while_a_volume_grows() {
	make growing ext4
	dax-check -size 4Mi -seed 4 write "$(target_of "$(id growing)")/mapped"
	dies_while_growing growing 64Mi
}

# The Go driver shows no snapshots, leaves them as they are, and counts their space.
go_serves_beside_snapshots() {
	local volumes free_bytes
	go_start
	equal 'the list' "$(listed_ids | sort)" \
		"$(for it in go-ext4 go-fileio our-ext4 our-xfs go-later our-clone growing; do id "$it"; done | sort)"
	again growing our-clone
	dax-check -size 4Mi -seed 4 verify "$(target_of "$(id growing)")/mapped"
	make go-last ext4
	goes go-last
	look_at_pools
	[ "$(available)" -le "$free_bytes" ]
	go_stop
}

ours_is_back() {
	local it volumes free_bytes
	driver_start
	await 60 growth_is_settled growing
	look_at_pools
	equal 'the capacity' "$(available)" "$free_bytes"
	snapshots_are_as_they_were pair
	for it in go-ext4 our-ext4; do
		restored "past-$it" "$it"
		restored "pair-$it" "$it"
	done
	csi -size 64Mi expand "$(id growing)"
	csi -fs ext4 node-expand "$(id growing)" "$(target_of "$(id growing)")"
	equal 'size of the device that grew' "$(blockdev --getsize64 "$(device_of "$(id growing)")")" $((64 << 20))
	dax-check -size 4Mi -seed 4 verify "$(target_of "$(id growing)")/mapped"
	written go-ext4 go-fileio our-ext4
	snapshots_are_as_they_were pair
}

snapshots_go() {
	local it
	for it in go-ext4 our-ext4; do
		csi delete-snapshot "$(id "past-$it")"
	done
	csi delete-group "$(id pair)"
	await 120 nothing_is_erasing
	driver_stop
	go_start
}

all_go() {
	local name
	for name in go-ext4 go-fileio our-ext4; do
		written "$name"
		stop_writer "$name"
	done
	for name in go-ext4 go-fileio our-ext4 our-xfs go-later our-clone growing; do
		goes "$name"
	done
	equal 'the list' "$(listed_ids)" ''
	go_stop
}

prove go-driver-makes-volumes go_makes_volumes
prove ours-waits-for-its-end ours_waits
prove ours-takes-over ours_takes_over
prove ours-makes-its-own ours_makes_its_own
prove go-driver-pushes-ours-aside go_pushes_ours_aside
prove go-driver-serves-all go_serves_all
prove ours-takes-snapshots ours_takes_snapshots
prove ours-dies-while-a-volume-grows ours_dies_while_a_volume_grows
prove go-driver-serves-beside-snapshots go_serves_beside_snapshots
prove ours-is-back-with-its-snapshots ours_is_back
prove snapshots-go snapshots_go
prove all-go all_go
cat "$driver_log" "$go_log"
