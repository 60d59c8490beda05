#!/usr/bin/env python3
"""A handler may begin before its claim is committed; that makes it neither free of charge nor final. A5.

usage: early.py postgres [--quick] [--seed N] [--only NAME]

A gate in the database keeps the commit of every claim of ours waiting, as a slow disk would, until the test opens it.
"""

import sys

from processes import check, wait_until
from runner import Runner
from scene import OURS, QUICK, Scene

GATE = """
CREATE TABLE public.gate (open bool);
INSERT INTO public.gate VALUES (false);
CREATE FUNCTION public.pass() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT w.name FROM holdfast.workflow w WHERE w.id = new.workflow_id) LIKE 'holdfast.%' THEN
        RETURN NULL;
    END IF;
    WHILE NOT (SELECT open FROM public.gate) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER gate AFTER UPDATE ON holdfast.run DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (new.status = 1 AND old.status = 0) EXECUTE FUNCTION public.pass();
"""


def close_gate(scene):
    scene.store.ask(GATE)


def open_gate(scene):
    scene.store.ask("UPDATE public.gate SET open = true")


def attempts(scene):
    return int(scene.store.ask("SELECT attempt FROM {run} WHERE " + OURS)[0][0])


def begin_early(scene, text):
    """A worker that is in a handler whose claim is not committed."""
    worker = scene.worker()
    wait_until(lambda: scene.lines("started"), "the worker is there")
    close_gate(scene)
    scene.trigger_one("crash.work", "early", text)
    scene.begun(1)
    check(attempts(scene) == 0, "the claim was committed before the handler began")
    return worker


def a_handler_that_kills_its_worker_has_its_attempt_counted(directory, kind):
    with Scene(directory, kind) as scene:
        worker = begin_early(scene, '{"ms":1,"kill":1}')
        wait_until(lambda: not worker.alive(), "the worker is dead")
        open_gate(scene)
        wait_until(lambda: attempts(scene) == 1, "the attempt is counted")
        scene.worker()
        scene.await_all_finished()
        check([attempt for _, _, attempt in scene.lines("start")] == ["1", "2"], "the attempts are not 1 and 2")
        scene.audit()


def a_claim_that_dies_with_the_server_is_worth_nothing(directory, kind):
    with Scene(directory, kind) as scene:
        begin_early(scene, QUICK)
        wait_until(lambda: scene.lines("end"), "the handler is done")
        check(not scene.lines("finished"), "its end was taken before its claim")
        scene.store.kill()
        wait_until(lambda: scene.lines("lost"), "the worker knows that it lost the run")
        scene.store.start()
        check(attempts(scene) == 0 and not scene.lines("finished"), "something of the claim is left")
        open_gate(scene)
        scene.await_all_finished()
        check([attempt for _, _, attempt in scene.lines("start")] == ["1", "1"], "the run was not begun twice")
        scene.audit()


TESTS = (a_handler_that_kills_its_worker_has_its_attempt_counted,
         a_claim_that_dies_with_the_server_is_worth_nothing)


def main():
    Runner(sys.argv[2:]).play(TESTS, sys.argv[1])


if __name__ == "__main__":
    main()
