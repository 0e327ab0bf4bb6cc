# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver whose state folder is changed by other programs: restored from a backup, with copies, truncated files, links, or removed.

usage: test_state_changed.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import os
import shutil
import stat

import driver
from driver import wait_for
from node import Code, Node


class Changed(Node):
    """What is done to the folder is done while no driver runs, or under the one that runs."""

    def path(self, volume, suffix=".json"):
        return f"{self.state}/{volume}{suffix}"

    def back_up(self):
        shutil.copytree(self.state, f"{self.folder}/backup", ignore=lambda folder, names: [".lock"])

    def restore(self):
        """The driver does not run meanwhile, as with a host that is set up again."""
        self.kill_driver()
        for name in os.listdir(self.state):
            if name != ".lock":
                os.unlink(f"{self.state}/{name}")
        for name in os.listdir(f"{self.folder}/backup"):
            shutil.copy2(f"{self.folder}/backup/{name}", self.state)
        self.start_driver()

    def recorded(self):
        return sorted(name for name in os.listdir(self.state) if not name.startswith("."))


class Backup(Changed):
    def test_volume_that_was_deleted_since(self):
        """Its file is back, its device is not: it can be deleted, and is not created again without a call."""
        kept, deleted = self.make("kept"), self.make("deleted")
        self.use(kept)
        self.back_up()
        self.unuse(kept)
        self.delete(deleted).result()
        wait_for(lambda: len(self.images()) == 1)
        self.restore()
        self.assert_refused(self.create("deleted"), Code.UNAVAILABLE, deleted)
        self.assert_refused(self.stage(deleted), Code.UNAVAILABLE, deleted)
        self.stage(kept).result()
        self.publish(kept).result()
        self.assert_kept(kept)
        self.unuse(kept)
        self.delete(deleted).result()
        self.assertNotIn(deleted, self.listed())
        self.delete_all()

    def test_volume_that_was_made_since(self):
        """The device exists and the file does not: it belongs to no volume until an administrator repairs it; then it has its data."""
        self.back_up()
        made = self.make("made")
        self.use(made)
        self.unuse(made)
        self.restore()
        self.assertIn("device without state is left alone", self.logged())
        self.assertEqual(self.listed(), [])
        self.assert_refused(self.create("made"), Code.FAILED_PRECONDITION, "check")
        self.assert_refused(self.delete(made), Code.FAILED_PRECONDITION)
        self.assertEqual(len(self.images()), 1)
        self.kill_driver()
        status, report = self.command("check")
        self.assertEqual((status, [f["kind"] for f in report["findings"]]), (1, ["device-without-state"]))
        self.assertEqual(self.command("check", f"-repair={made}", "-filesystem")[0], 0)
        self.start_driver()
        self.stage(made).result()
        self.publish(made).result()
        self.assert_kept(made)
        self.unuse(made)
        self.delete_all()

    def test_volume_that_was_in_use_then(self):
        """The mounts in the file are not relied on."""
        volume = self.make("volume")
        self.use(volume)
        self.back_up()
        self.unuse(volume)
        self.restore()
        self.delete(volume).result()
        self.delete_all()

    def test_volume_that_was_not_in_use_then(self):
        """That the file has no mounts is not relied on: the volume is in use, and is not deleted."""
        volume = self.make("volume")
        self.back_up()
        self.use(volume)
        self.restore()
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION)
        self.assert_kept(volume)
        self.stage(volume).result()
        self.publish(volume).result()
        self.assertEqual(len(self.mounted(self.target(volume))), 1)
        self.unuse(volume)
        self.delete_all()

    def test_volume_that_was_made_anew_since(self):
        """Of the same name and ID: the file speaks of another device, and nothing is done to this one."""
        first = self.make("volume")
        self.back_up()
        self.delete(first).result()
        wait_for(lambda: not self.images() and not os.path.exists(f"{self.state}/{first}.erasing"))
        second = self.make("volume")
        self.assertEqual(first, second)
        self.use(second)
        self.unuse(second)
        shutil.copy2(self.path(second), f"{self.folder}/second.json")
        self.restore()
        self.assert_refused(self.stage(second), Code.FAILED_PRECONDITION, "identity")
        self.assert_refused(self.delete(second), Code.FAILED_PRECONDITION, "identity")
        self.assertEqual(len(self.images()), 1)
        self.kill_driver()
        shutil.copy2(f"{self.folder}/second.json", self.path(second))
        self.start_driver()
        self.stage(second).result()
        self.publish(second).result()
        self.assert_kept(second)
        self.unuse(second)
        self.delete_all()


class Strangers(Changed):
    def test_copies_beside_the_files(self):
        """As backup tools and editors leave them: they belong to no volume, and stay."""
        volume = self.make("volume")
        names = [f"{volume}.json.bak", f"{volume}.json~", f"#{volume}.json#", f"{volume}.json.1", f".{volume}.json.swp"]
        for name in names:
            shutil.copy2(self.path(volume), f"{self.state}/{name}")
        shutil.copy2(self.path(volume), f"{self.state}/copy of {volume}.json")
        shutil.copy2(self.path(volume), f"{self.state}/{volume}-2.json")
        self.restart_driver()
        self.assertEqual(self.listed(), [volume])
        self.assertRegex(self.logged(), f"state file is not used.*{volume}-2.json.*a volume other than")
        self.use(volume)
        self.unuse(volume)
        self.delete(volume).result()
        wait_for(lambda: not self.images())
        for name in [*names, f"copy of {volume}.json", f"{volume}-2.json"]:
            os.unlink(f"{self.state}/{name}")
        self.restart_driver()
        self.delete_all()

    def test_links_and_folders_with_names_of_volumes(self):
        """They are not volumes, do not disturb the driver, and stay."""
        volume = self.make("volume")
        secret = f"{self.folder}/secret.json"
        shutil.copy2(self.path(volume), secret)
        os.symlink(secret, self.path("linked"))
        os.symlink("/nowhere", self.path("dangling"))
        os.symlink("/dev/zero", self.path("endless", ".creating"))
        os.mkfifo(self.path("fifo"))
        os.mkdir(self.path("folder", ".erasing"))
        self.restart_driver()
        self.assertEqual(self.listed(), [volume])
        for name in "linked.json", "dangling.json", "endless.creating", "fifo.json", "folder.erasing":
            self.assertRegex(self.logged(), f"state file is not used.*{name}")
        self.use(volume)
        self.unuse(volume)
        with open(secret) as file:
            self.assertIn(volume, file.read())
        for name in "linked.json", "dangling.json", "endless.creating", "fifo.json":
            self.assertTrue(os.path.lexists(f"{self.state}/{name}"))
            os.unlink(f"{self.state}/{name}")
        os.rmdir(self.path("folder", ".erasing"))
        self.restart_driver()
        self.delete_all()

    def test_a_link_in_place_of_a_volumes_file(self):
        """What is written replaces the link, and nothing is written through it."""
        volume = self.make("volume")
        victim = f"{self.folder}/victim"
        with open(victim, "w") as file:
            file.write("victim")
        os.unlink(self.path(volume))
        os.symlink(victim, self.path(volume))
        self.stage(volume).result()
        self.unstage(volume).result()
        with open(victim) as file:
            self.assertEqual(file.read(), "victim")
        self.assertFalse(os.path.islink(self.path(volume)))
        self.restart_driver()
        self.delete_all()


class Files(Changed):
    def test_cut_off(self):
        """As a disk that was not flushed leaves them: neither volume nor device is touched until it is repaired."""
        empty, half = self.make("empty"), self.make("half")
        self.use(half)
        self.unuse(half)
        self.kill_driver()
        sizes = {empty: 0, half: os.path.getsize(self.path(half)) // 2}
        for volume, size in sizes.items():
            os.truncate(self.path(volume), size)
        self.start_driver()
        self.assertEqual(len(self.images()), 2)
        for name, volume in ("empty", empty), ("half", half):
            self.assertRegex(self.logged(), f"state file is not used.*{volume}.json")
            self.assert_refused(self.create(name), Code.FAILED_PRECONDITION, volume)
            self.assertEqual(os.path.getsize(self.path(volume)), sizes[volume])
        self.kill_driver()
        for volume in sizes:
            self.assertEqual(self.command("check", f"-repair={volume}", "-filesystem")[0], 0)
        self.start_driver()
        self.stage(half).result()
        self.publish(half).result()
        self.assert_kept(half)
        self.unuse(half)
        self.delete_all()

    def test_owner_and_mode(self):
        """root reads and writes them whatever they are, and what it writes is root's again."""
        volume = self.make("volume")
        os.chown(self.path(volume), 65534, 65534)
        os.chmod(self.path(volume), 0)
        os.chown(self.state, 65534, 65534)
        os.chmod(self.state, 0o777)
        self.restart_driver()
        self.assertEqual(self.listed(), [volume])
        self.use(volume)
        self.unuse(volume)
        written = os.stat(self.path(volume))
        self.assertEqual((written.st_uid, stat.S_IMODE(written.st_mode) & 0o022), (0, 0))
        self.delete_all()

    def test_of_the_future(self):
        """Made when the clock was years ahead, or at the beginning of time."""
        volumes = [self.make("future"), self.make("past")]
        for volume, when in zip(volumes, (4102444800, 0)):
            os.utime(self.path(volume), (when, when))
        os.utime(self.state, (4102444800, 4102444800))
        self.restart_driver()
        self.assertEqual(self.listed(), sorted(volumes))
        for volume in volumes:
            self.use(volume)
            self.unuse(volume)
        self.delete_all()


class Folder(Changed):
    def test_file_removed_under_the_driver(self):
        """It knows the volume, and records it again with the next change."""
        volume = self.make("volume")
        os.unlink(self.path(volume))
        self.use(volume)
        self.assertTrue(os.path.exists(self.path(volume)))
        self.unuse(volume)
        os.unlink(self.path(volume))
        self.insist(self.delete, volume)
        self.delete_all()

    def remove_folder(self):
        shutil.copytree(self.state, f"{self.folder}/before", ignore=lambda folder, names: [".lock"])
        shutil.rmtree(self.state)

    def restore_folder_and_use(self, volume):
        self.kill_driver()
        shutil.copytree(f"{self.folder}/before", self.state)
        self.start_driver()
        self.stage(volume).result()
        self.publish(volume).result()
        self.assert_kept(volume)
        self.unuse(volume)
        self.delete_all()

    def test_folder_removed_under_the_driver(self):
        """Nothing is made that cannot be recorded, and with the folder of before all is as it was."""
        volume = self.make("volume")
        self.use(volume)
        self.remove_folder()
        self.assert_retried(self.create("new").exception(), "state of volume .*No such file or directory")
        self.assertEqual(len(self.images()), 1)
        self.assert_memory_is_read()
        self.assert_kept(volume)
        self.restore_folder_and_use(volume)

    def test_pods_end_while_the_folder_is_removed(self):
        """Unmounting needs no record: nothing stays mounted, and what is restored knows no more than it may."""
        volume = self.make("volume")
        self.use(volume)
        self.remove_folder()
        self.unpublish(volume).result()
        self.unstage(volume).result()
        for path in self.target(volume), self.staging(volume):
            self.assertEqual(self.mounted(path), [])
        self.unpublish(volume).result()
        self.unstage(volume).result()
        self.assertEqual(len(self.images()), 1)
        self.restore_folder_and_use(volume)

    def test_folder_moved_under_the_driver(self):
        """It continues to use the folder that it has; a second driver does not get the same volumes."""
        volume = self.make("volume")
        os.rename(self.state, f"{self.folder}/away")
        self.use(volume)
        self.unuse(volume)
        self.make("new")
        self.assertFalse(os.path.exists(self.state))
        self.kill_driver()
        os.rename(f"{self.folder}/away", self.state)
        self.start_driver()
        self.assertEqual(len(self.listed()), 2)
        self.delete_all()


if __name__ == "__main__":
    driver.main()
