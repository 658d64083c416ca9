#!/usr/bin/env python3
"""Tries Subdeck with the seven real agents and prints a table: agent x check.

    SUBDECK_REAL_AGENTS=DIR SUBDECK_REAL_MODEL_LOG=FILE python3 tests/real-agents/seven.py [AGENT...]

DIR has programs called pi, claude, codex, opencode, gemini, qwen and copilot that need no arguments to find their model
and their key; one that is missing is left out, which is said. The model behind them is scripted as the heads of the
tests in tests/real_*.rs say, and writes every request into FILE: a line of JSON with `last`, the last two texts of the
user. The binary is $SUBDECK, else target/release/subdeck, else target/debug/subdeck. At most $JOBS agents (2) are tried
at the same time. Agents are tried as plans run them by default; `claude/oneshot` and the like name the other transport.

A check passes, fails, or cannot be made (n/a) for a reason that lies in the agent. The exit code is 1 when one failed, 2
when nothing could be tried.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENTS = ["pi", "claude", "codex", "opencode", "gemini", "qwen", "copilot"]
# The same over the transport that takes one prompt, where there is one.
ONE_SHOT = [f"{agent}/oneshot" for agent in AGENTS]
CHECKS = ["text", "shell", "parallel", "failing tool", "error 500", "exit codes", "steer", "interrupt", "resume", "stop"]
HELLO = "Hello! This is a plain text reply"

# What more a runner has to say than where its program is.
ARGS = {"qwen": ["--auth-type", "openai"]}
# Whose key Gemini is to log in with, and how often Claude Code asks a provider that fails: its own number takes minutes.
ENV = {"CLAUDE_CODE_MAX_RETRIES": "2", "GEMINI_API_KEY": "dummy"}
# Agents that take a message in the middle of a tool by breaking off what they do.
REDIRECTED = {"gemini", "copilot"}
# The protocol of this one does not tell how a command ended.
SILENT_ABOUT_FAILURE = {"gemini"}
# Of what these tell over the transport with one prompt: no tokens, a call only when it is over, the session at the end.
NO_TOKENS = {"copilot/oneshot"}
LATE_CALLS = {"opencode/oneshot"}
LATE_SESSION = {"copilot/oneshot"}
# How an agent tells of an error 500 that has words of its own for it.
ERROR_500 = {"codex": "high demand"}
# No process of a stopped agent may live longer than this, in seconds.
GONE = 10
# As long as anything else may take on a busy machine, in seconds; Gemini asks for four minutes when a provider fails.
PATIENCE = 600


class Failed(Exception):
    """A check failed."""


class NotPossible(Exception):
    """A check cannot be made, for a reason that lies in the agent."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def wait_for(what, look, patience=PATIENCE):
    """Waits until `look` returns something; returns that."""
    deadline = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        expect(time.monotonic() < deadline, f"{what}: not within {patience} s")
        time.sleep(0.05)


def printed(stdout):
    """What the agent said on the lines that a run prints of it; one that speaks on its other output in the middle of a
    line has that line in two pieces."""
    return "".join(line.split(" │ ", 1)[1] for line in stdout.splitlines() if " │ " in line)


class World:
    """A run root and a project of their own."""

    def __init__(self, row, program, subdeck):
        self.row = row
        self.agent, _, self.transport = row.partition("/")
        self.program, self.subdeck = program, subdeck
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"seven-{self.agent}-"))
        self.project = self.folder / "project"
        self.project.mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SUBDECK", "XDG_", "PI_SUBAGENT"))}
        self.env = kept | {
            "HOME": str(self.folder),
            "SUBDECK_ROOT": str(self.folder / "root"),
            "PI_SUBAGENTS_TEMP_ROOT": str(self.folder / "pi-root"),
            "TMPDIR": str(self.folder),
            "SUBDECK_TEST": str(self.folder),
        } | ENV

    def run(self, *args, timeout=PATIENCE):
        """Runs subdeck to its end."""
        return subprocess.run(
            [self.subdeck, *args],
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def ok(self, *args):
        done = self.run(*args)
        expect(done.returncode == 0, f"`{' '.join(args)}` gave {done.returncode}: {done.stderr.strip()}")
        return done

    def plan(self, *steps):
        """Writes a plan of these steps: pairs of an id and a task."""
        quoted = lambda words: json.dumps(words)
        more = "" if self.agent == "pi" else ', permission = "allow"'
        more += f', transport = "{self.transport}"' if self.transport else ""
        runner = (
            f'{{ type = "{self.agent}", command = {quoted(str(self.program))}, '
            f"args = {quoted(ARGS.get(self.agent, []))}{more} }}"
        )
        path = self.project / "plan.toml"
        path.write_text("".join(f'[[step]]\nid = "{i}"\ntask = {quoted(t)}\nrunner = {runner}\n' for i, t in steps))
        return str(path)

    def detach(self, task):
        return self.ok("run", "--detach", self.plan(("a", task))).stdout.strip()

    def status(self, run):
        return json.loads(self.ok("status", "--json", run).stdout)

    def tool_runs(self, run, seconds):
        """Waits until the shell command that sleeps for so long is a process, and the run says so."""
        wait_for("the tool's process", lambda: with_words(f"time.sleep({seconds})"))
        if self.row not in LATE_CALLS:
            wait_for("the tool", lambda: self.status(run)["steps"][0].get("current_tool"))

    def processes(self):
        """Every living process that inherited this folder's mark."""
        mark = f"SUBDECK_TEST={self.folder}".encode()
        return [pid for pid in living() if mark in read(f"/proc/{pid}/environ").split(b"\0")]

    def wait_until_empty(self, patience=GONE, words=None):
        """Waits until none of them lives, nor any that has these words in its command line."""
        gone = lambda: not self.processes() and not (words and with_words(words))
        try:
            wait_for("the end of all processes", gone, patience)
        except Failed:
            left = {pid: read(f"/proc/{pid}/cmdline")[:80].replace(b"\0", b" ").decode("utf8", "replace")
                    for pid in self.processes() + (with_words(words) if words else [])}
            raise Failed(f"still alive after {patience} s: {left}") from None

    def close(self):
        for pid in self.processes():
            subprocess.run(["sh", "-c", f"kill -s KILL {pid}"], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def living():
    """The processes that have not ended."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and read(entry / "stat").rpartition(b") ")[2][:1] not in (b"Z", b"X", b""):
            yield int(entry.name)


def with_words(words):
    """The processes of a shell command: those that have these words in their command line, but for this program's."""
    return [pid for pid in living()
            if pid != os.getpid() and words.encode() in read(f"/proc/{pid}/cmdline")
            and b"seven.py" not in read(f"/proc/{pid}/cmdline") and b"[[scenario" not in read(f"/proc/{pid}/cmdline")]


class Model:
    """What the scripted model was asked."""

    def __init__(self, log):
        self.log = pathlib.Path(log)

    def asked(self, words):
        """The requests that have these words among the user's last texts, oldest first."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            if words not in line:
                continue
            try:
                request = json.loads(line)
            except ValueError:
                continue
            if any(words in text for _, text in request.get("last") or []):
                found.append(request)
        return found


def word():
    """A word that nobody else says."""
    return f"banana-{random.SystemRandom().randrange(10**9)}"


def seconds():
    """A length that only one command of ours has, longer than any check takes."""
    return 2000 + random.SystemRandom().randrange(10**6)


def one_run_of_all(world, _model, report):
    """A plan with a text, a shell command, two at once, one that fails, and a provider that fails."""
    scenes = ["text", "bash secs=1", "parallel", "fail", "err500"]
    ids = CHECKS[:5]
    plan = world.plan(*((name.replace(" ", "-"), f"[[scenario:{scene}]] Do it.") for name, scene in zip(ids, scenes)))
    done = world.run("run", "--no-tui", plan)
    status = world.status("@last")
    steps = dict(zip(ids, status["steps"]))

    def ended_well(name, answer, outcomes):
        step = steps[name]
        expect(step["state"] == "complete", f"the step is {step['state']}: {step.get('error')}")
        expect(step.get("exit_code") == 0, f"its exit code is {step.get('exit_code')}")
        expect(answer in (step.get("last_message") or ""), f"the answer is {step.get('last_message')!r}")
        expect(step["tool_calls"] == len(outcomes), f"{step['tool_calls']} calls")
        found = [tool.get("outcome") for tool in step["recent_tools"]]
        expect(found == outcomes, f"the calls ended {found}")
        expect(not step.get("open_tools"), f"open calls: {step.get('open_tools')}")
        tokens = step.get("tokens") or {}
        told = tokens.get("input", 0) > 0 and tokens.get("output", 0) > 0
        expect(told != (world.row in NO_TOKENS), f"tokens {tokens}")

    def final(scene):
        return f"Final answer for scenario {scene}: all done."

    report("text", lambda: ended_well("text", HELLO, []))
    report("shell", lambda: ended_well("shell", final("bash"), ["ok"]))
    report("parallel", lambda: ended_well("parallel", final("parallel"), ["ok", "ok"]))

    def failing():
        silent = world.agent in SILENT_ABOUT_FAILURE
        ended_well("failing tool", final("fail"), ["ok" if silent else "error"])
        return "it tells no exit codes" if silent else None

    report("failing tool", failing)

    def error_500():
        step = steps["error 500"]
        expect(step["state"] == "failed", f"the step is {step['state']}")
        expect(step.get("exit_code") != 0, "its exit code is 0")
        error = step.get("error") or ""
        known = ["500", "scripted server error", ERROR_500.get(world.agent, "500")]
        expect(any(words in error for words in known), f"the error is {error!r}")

    report("error 500", error_500)

    def codes():
        expect(done.returncode == 1, f"the run with a failed step gave {done.returncode}")
        expect(status["exit_code"] == 1, f"its status says {status['exit_code']}")
        good = world.run("run", "--no-tui", world.plan(("a", "[[scenario:text]] Do it.")))
        expect(good.returncode == 0, f"a good run gave {good.returncode}: {good.stderr}")
        expect(HELLO in printed(good.stdout), f"a good run printed {good.stdout!r}")

    report("exit codes", codes)
    world.wait_until_empty()


def steered(world, model, report):
    """A message in the middle of a tool."""

    def steer():
        run, said = world.detach("[[scenario:multi secs=6 n=3]] Run them."), word()
        if world.transport:
            wait_for("the agent", lambda: world.status(run)["steps"][0].get("pid"))
            refused = world.run("steer", "--wait", run, "Enough.")
            expect(refused.returncode != 0 and refused.stderr.strip(), "a message was taken that cannot be handed on")
            world.ok("stop", "--wait", run)
            raise NotPossible("it takes one prompt, and says so")
        wait_for("the tool", lambda: world.status(run)["steps"][0].get("current_tool"))
        sent = world.ok("steer", "--wait", run, f"[[scenario:text]] Enough, {said}")
        expect("delivered" in sent.stderr, f"`steer --wait` said {sent.stderr.strip()!r}")
        code = world.run("wait", run).returncode
        step = world.status(run)["steps"][0]
        expect(code == 0 and step["state"] == "complete", f"it ended {step['state']} with {code}: {step.get('error')}")
        expect(model.asked(said), "the model never got it")
        expect(HELLO in step["last_message"], f"the answer is {step['last_message']!r}")
        outcomes = [tool.get("outcome") for tool in step["recent_tools"]]
        expect(len(outcomes) < 3, f"it came after all of the work: {outcomes}")
        if world.agent in REDIRECTED:
            expect("cancelled" in outcomes or "error" in outcomes, f"nothing was broken off: {outcomes}")
            return "redirected"
        expect(all(outcome == "ok" for outcome in outcomes), f"a tool was broken off: {outcomes}")

    report("steer", steer)
    world.wait_until_empty()


def interrupted(world, model, report):
    """An interrupt in the middle of a tool, and the session gone on with."""
    nap = seconds()
    run = world.detach(f"[[scenario:bash secs={nap}]] Take your time.")

    def interrupt():
        world.tool_runs(run, nap)
        world.ok("interrupt", "--wait", run)
        code = world.run("wait", run).returncode
        status = world.status(run)
        expect(code == 4 and status["state"] == "paused", f"it ended {status['state']} with {code}")
        world.wait_until_empty(words=f"time.sleep({nap})")

    def resume():
        # The message picks no script, so what the model does next is by what it was told before.
        said = word()
        if world.row in LATE_SESSION and not world.status(run)["steps"][0].get("session"):
            refused = world.run("resume", run, "Go on.", "--detach")
            expect("never named its session" in refused.stderr, f"`resume` said {refused.stderr.strip()!r}")
            raise NotPossible("it names its session at its end only, and did not come to that")
        second = world.ok("resume", run, f"Go on, {said}", "--detach").stdout.strip()
        over = lambda: world.status(second).get("ended_at")
        again = lambda: with_words(f"time.sleep({nap})")
        wait_for("an answer", lambda: over() or again())
        session = lambda status: status["steps"][0].get("session")
        first, last = world.status(run), world.status(second)
        error = last["steps"][0].get("error") or ""
        asked = [request for request in model.asked(said) if not request["side"]]
        expect(asked and asked[0]["scenario"] == "bash", f"the session began anew: {error} {asked[:1]}")
        expect(session(first) == session(last), f"sessions {session(first)} and {session(last)}")
        if over():
            code = world.run("wait", second).returncode
            expect(code == 0, f"it ended {last['state']} with {code}: {error}")
            return None
        # The model was not told of the call that was broken off, so it calls again.
        world.ok("interrupt", "--wait", second)
        done = world.run("resume", second, "[[scenario:text]] Enough.", "--no-tui")
        expect(done.returncode == 0, f"`resume` gave {done.returncode}: {done.stderr.strip()}")
        expect(HELLO in printed(done.stdout), f"`resume` printed {done.stdout!r}")
        return "the broken-off call is not in its history"

    if report("interrupt", interrupt):
        report("resume", resume)
    else:
        report("resume", lambda: expect(False, "it was not interrupted"))
    world.wait_until_empty()


def stopped(world, _model, report):
    """A stop in the middle of a shell command."""

    def stop():
        nap = seconds()
        run = world.detach(f"[[scenario:bash secs={nap}]] Take your time.")
        world.tool_runs(run, nap)
        begin = time.monotonic()
        # Not waited for by the command: the ten seconds begin with the request.
        world.ok("stop", run)
        world.wait_until_empty(GONE, words=f"time.sleep({nap})")
        took = time.monotonic() - begin
        code = world.run("wait", run).returncode
        status = world.status(run)
        expect(code == 3 and status["state"] == "stopped", f"it ended {status['state']} with {code}")
        return f"{took:.1f} s"

    report("stop", stop)


def try_agent(agent, program, subdeck, model):
    """The row of an agent, or of it over another transport: for each check its verdict and what there is to say of it."""
    row = {}

    def report(check, make):
        try:
            row[check] = ("PASS", make())
        except NotPossible as reason:
            row[check] = ("n/a", str(reason))
        except Failed as what:
            row[check] = ("FAIL", str(what)[:400])
        except Exception as error:  # a run that printed nothing, or a program that hangs, is a failure of the check
            row[check] = ("FAIL", f"{type(error).__name__}: {error}")
        print(f"{agent:14} {check:13} {row[check][0]}  {row[check][1] or ''}", flush=True)
        return row[check][0] == "PASS"

    for part, checks in [(one_run_of_all, CHECKS[:6]), (steered, ["steer"]),
                         (interrupted, ["interrupt", "resume"]), (stopped, ["stop"])]:
        world = World(agent, program, subdeck)
        try:
            part(world, model, report)
        except Exception as error:  # noqa: BLE001 - what ends a part is the failure of what it did not get to
            for check in checks:
                if check not in row:
                    row[check] = ("FAIL", f"{type(error).__name__}: {error}")
                    print(f"{agent:14} {check:13} FAIL  {row[check][1]}", flush=True)
            if all(row[check][0] != "FAIL" for check in checks):
                row[checks[-1]] = ("FAIL", f"afterwards: {error}")
                print(f"{agent:14} {checks[-1]:13} FAIL  {row[checks[-1]][1]}", flush=True)
        finally:
            world.close()
    return row


def table(rows):
    head = ["agent", *CHECKS]
    cells = [head] + [[agent, *(row[check][0] for check in CHECKS)] for agent, row in rows.items()]
    widths = [max(len(line[n]) for line in cells) for n in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"{agent}, {check}: {verdict} {said}"
             for agent, row in rows.items() for check, (verdict, said) in row.items() if said]
    return "\n".join(lines + [""] + notes)


def binary():
    named = os.environ.get("SUBDECK")
    candidates = [named] if named else [ROOT / "target/release/subdeck", ROOT / "target/debug/subdeck"]
    return next((str(path) for path in candidates if os.access(path, os.X_OK)), None)


def main():
    folder, log = os.environ.get("SUBDECK_REAL_AGENTS"), os.environ.get("SUBDECK_REAL_MODEL_LOG")
    subdeck = binary()
    if not folder or not log or not subdeck:
        print(__doc__, file=sys.stderr)
        return 2
    wanted = sys.argv[1:] or AGENTS + ONE_SHOT
    unknown = [agent for agent in wanted if agent not in AGENTS + ONE_SHOT]
    if unknown:
        print(f"there is no agent {unknown[0]} here; there are {', '.join(AGENTS + ONE_SHOT)}", file=sys.stderr)
        return 2
    there = {}
    for agent in wanted:
        program = pathlib.Path(folder) / agent.partition("/")[0]
        if os.access(program, os.X_OK):
            there[agent] = program
        else:
            print(f"{agent}: skipped, there is no {program}")
    if not there:
        return 2
    model = Model(log)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        rows = dict(zip(there, pool.map(lambda agent: try_agent(agent, there[agent], subdeck, model), there)))
    print("\n" + table(rows))
    return int(any(verdict == "FAIL" for row in rows.values() for verdict, _ in row.values()))


if __name__ == "__main__":
    sys.exit(main())
