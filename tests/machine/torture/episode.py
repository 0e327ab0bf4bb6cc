# SPDX-License-Identifier: Apache-2.0
"""One life of a volume with a crash in it."""

from calls import Died, Failed, Timeout
from invariants import check_all, check_end, check_erased, check_foreign, check_settled
from life import Broken
from stories import begin

STARTS_MAX = 5


class Episode:
    """Plays a life, with an end in order or a crash in any of its steps."""

    def __init__(self, world, driver, bystander, before, foreign):
        self.world, self.driver, self.bystander = world, driver, bystander
        self.before, self.foreign = before, foreign
        self.findings = []
        self.crashes = 0
        self.at = "start"
        self.on_step = lambda name: None
        self.crash = driver.kill
        self.loses_power = False

    def play(self, kind, number, first=None, second=None, interrupted=None):
        """With the environment of the first driver, and of the one after it; from an interrupted step on."""
        self.starts = [first or {}, second or {}]
        life = begin(self.world, self.driver, kind, number)
        if interrupted:
            life.suppose(interrupted)
            self.crashes = 1
        try:
            self.live(life, interrupted)
        except Broken as broken:
            self.findings.append((broken.invariant, str(broken)))
        except (Failed, Timeout, AssertionError, OSError) as problem:
            self.findings.append(("retry", f"{type(problem).__name__}: {problem}"))
        life.let_go()
        self.driver.kill()
        self.world.forget_devices()
        return self.findings

    def live(self, life, interrupted):
        self.on_step(self.at)
        if interrupted and interrupted != "create":
            life.recall()
        self.start(life)
        steps = life.rest(interrupted, power_lost=True) if interrupted else life.steps()
        if interrupted:
            life.recall()
        while steps:
            step = steps[0]
            self.at = step.__name__
            self.on_step(self.at)
            crashes = self.crashes
            if self.survives(life, step):
                steps = steps[1:]
            elif self.loses_power and crashes != self.crashes and self.at in [s.__name__ for s in life.steps()]:
                steps = life.rest(self.at, power_lost=True)
        self.at = "end"
        while not self.survives(life, self.end):
            pass
        self.check_stopped(life)

    def end(self):
        self.findings += check_settled(self.world, self.driver)
        self.driver.stop()

    def start(self, life):
        """Until a driver is ready that has left the checks alive."""
        for _ in range(STARTS_MAX):
            try:
                self.driver.start(**(self.starts.pop(0) if self.starts else {}))
                if self.crashes:
                    if self.loses_power:
                        self.bystander.stage()
                        self.bystander.publish()
                    self.findings += check_all(
                        self.world, self.driver, life, self.bystander, self.foreign
                    )
                return
            except Died:
                self.die()
        raise Timeout("the driver dies at every start")

    def survives(self, life, step):
        try:
            step()
            return True
        except Died:
            self.die()
            self.start(life)
            return False

    def die(self):
        self.crashes += 1
        if self.crashes > STARTS_MAX:
            raise Timeout("the driver dies again and again")
        self.crash()

    def check_stopped(self, life):
        """What is left to look at when the driver has ended in order."""
        self.findings += check_end(self.world, self.before)
        self.findings += check_erased(self.world, life, self.bystander)
        self.findings += check_foreign(self.world, self.foreign)
        lost = self.bystander.content_is_lost()
        if lost:
            self.findings.append(("lost", lost))
