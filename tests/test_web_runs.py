"""The pages about runs in a real browser: live, safe, readable, and alive again after a restart."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest
import tomli_w

from browser import WebServer, accessibility_problems
from commandline import one_line
from ludus.config import plain, resolve
from trainings import limit, ludus_command, wait_until

pytest.importorskip("nicegui")
PEAK, PEAK_AT = 4321.0, 12_345
SECRETS = ("s3cretWebhook", "s3cretPassword", "s3cretToken", "s3cretMirror", "s3cretEnviron")
VIEW = "Object.values(mounted_app.$refs).find((one) => one?.drawn)"
"""The part of a page that draws curves."""


def make_run(folder, lines=50, secrets=False):
    """A run that ended, as a training leaves it; with a peak in its losses if it is long enough."""
    folder.mkdir()
    values = plain(resolve("tictactoe", "test"))
    events = [{"time": time.time(), "event": "start", "decisions": 0}]
    if secrets:
        values |= {"notify": [f"discord://1/{SECRETS[0]}"], "mirror": f"s3://u:{SECRETS[3]}@b/x"}
        events.append({"time": time.time(), "event": "failed", "reason": f"password: {SECRETS[1]}"})
        events.append({"event": "mirror", "reason": f"https://h/{SECRETS[0]}", "token": SECRETS[2]})
    else:
        events.append({"time": time.time(), "event": "end", "decisions": 10 * lines})
    (folder / "config.toml").write_text(tomli_w.dumps(values))
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    with (folder / "metrics.jsonl").open("w") as out:
        for number in range(1, lines + 1):
            out.write(json.dumps(metrics(number)) + "\n")
    return folder


def metrics(number):
    evaluated = {"eval/random/score": 0.5, "eval/random/score_ci": 0.1, "eval/random/win": 0.7}
    return {
        "seconds": number / 10, "decisions": 10 * number, "games": number, "speed/now": 1000.0,
        "speed/overall": 900.0, "game/score": number % 5 / 5, "measure": float(number), "cpu/all": 1.5,
        "time/learning": number / 20, "time/saving": 0.0, "workers/stepping": 0.5, "workers/inference": 0.5,
        "losses/policy": PEAK if number == PEAK_AT else number % 3 / 10, "memory/bytes": 2**30,
        "seated/self": 0.5, "seated/past": 0.5, "rating/self": 25.0,
        **(evaluated if number % 10 == 0 else {}),
    }  # fmt: skip


def points(page, chart):
    """What a chart draws: [[x, y], ...] of its first curve."""
    return page.evaluate(f"(chart) => {VIEW}.drawn[chart].getOption().series[0].data", chart)


def wait_drawn(page, chart, curves=1):
    page.wait_for_selector(f'[data-chart="{chart}"] canvas')
    page.wait_for_function(
        f"(chart) => {VIEW}?.drawn[chart]?.getOption().series.length === {curves}", arg=chart
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run, a long one, and two with secrets, one of which is damaged."""
    folder = tmp_path_factory.mktemp("web") / "runs"
    folder.mkdir()
    make_run(folder / "done")
    make_run(folder / "long run & <b>odd", lines=20_000)
    make_run(folder / "secret", secrets=True)
    (folder / "broken").mkdir()
    (folder / "broken" / "config.toml").write_text(f'game = "x"\nnotify = "discord://1/{SECRETS[0]}"\n')
    return folder


@pytest.fixture(scope="module")
def server(runs):
    server = WebServer(runs, DISCORD_WEBHOOK_URL=f"https://discord.com/api/webhooks/1/{SECRETS[4]}")
    yield server
    server.stop()


def test_the_list_shows_all_runs_and_what_becomes_of_them(server, runs, visit):
    page = visit().open(server.url)
    row = page.locator('tr[data-run="done"]')
    assert [text in row.inner_text() for text in ("tictactoe", "done", "100 %", "500")] == [True] * 4
    assert row.locator("svg.spark polyline").count() == 1
    make_run(runs / "new")
    page.wait_for_selector('tr[data-run="new"]')
    shutil.rmtree(runs / "new")
    page.wait_for_selector('tr[data-run="new"]', state="detached")
    page.get_by_label("Filter").fill("odd")
    assert page.locator("tbody tr").count() == 1
    page.get_by_role("link", name="odd").click()
    page.wait_for_selector("dl.facts")
    assert page.locator("h1").inner_text() == "long run & <b>odd"


def test_a_long_curve_keeps_its_peak_and_can_be_looked_at_closely(server, runs, visit):
    one = visit(accept_downloads=True)
    page = one.open(f"{server.url}/run/long%20run%20%26%20%3Cb%3Eodd")
    page.get_by_text("policy loss").scroll_into_view_if_needed()
    chart = "Learning/policy loss"
    wait_drawn(page, chart)
    drawn = points(page, chart)
    assert len(drawn) <= 800
    assert [10 * PEAK_AT, PEAK] in drawn
    page.get_by_label("From").fill("123000")
    page.get_by_label("to", exact=True).fill("124000")
    page.keyboard.press("Tab")
    inside = "data.filter(([x]) => x >= 123000 && x <= 124000).length === 101"
    page.wait_for_function(f"(chart) => {VIEW}.drawn[chart].getOption().series[0].{inside}", arg=chart)
    near = [(x, y) for x, y in points(page, chart) if 123_000 <= x <= 124_000]
    assert (10 * PEAK_AT, PEAK) in near
    page.get_by_label("From").fill("5")  # not done typing when new figures come
    page.evaluate(f"() => {{ {VIEW}.latest[{chart!r}] = 'new' }}")
    page.wait_for_function("() => document.body.innerText.includes('new')")
    assert page.get_by_label("From").input_value() == "5"
    page.get_by_role("button", name="Reset zoom").click()
    canvas = page.locator(f'[data-chart="{chart}"]')
    canvas.scroll_into_view_if_needed()
    place = canvas.bounding_box()
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    page.mouse.move(x, y)
    page.wait_for_function("(box) => /policy loss\\s*0/.test(box.innerText)", arg=canvas.element_handle())
    page.mouse.down()
    page.mouse.move(x + 50, y, steps=3)
    page.mouse.up()
    page.wait_for_function("() => Number(document.querySelector('input.edge').value) > 50000")
    with page.expect_download() as download:
        page.get_by_label("Download policy loss as CSV").click()
    assert download.value.path().read_text().startswith("series,decisions,value\n")
    with page.expect_download() as download:
        page.get_by_label("Download policy loss as PNG").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    whole = download.value.path().read_text().splitlines()
    assert len(whole) == 20_001 and f"{PEAK}" in whole[PEAK_AT] and whole[0].startswith("decisions,seconds")


def test_a_curve_grows_during_a_training_whose_death_is_seen(server, runs, visit, tmp_path):
    """And the training serves a page of its own, which it takes along."""
    flags = ["--preset", "test", "--decisions", "1000000000", "--workers", "0", "--log-s", "0.2", "--web"]
    flags += ["--set", "step_s=0.001"]  # it leaves the cores to the browser
    training = subprocess.Popen(
        **ludus_command("train", "broken_envs:Slow", *flags, "--run", str(runs / "live"), cwd=tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        own = training.stdout.readline().partition("watch it at ")[2].split()[0]
        page = visit().open(server.url)
        page.get_by_role("link", name="live").click()
        chart = "Speed/Decisions a second"
        page.locator(f'[data-chart="{chart}"]').scroll_into_view_if_needed()
        wait_drawn(page, chart, curves=2)
        assert page.locator(".state").inner_text() == "running"
        before, told = len(points(page, chart)), page.locator(".decisions").inner_text()
        page.wait_for_function(
            f"(count) => {VIEW}?.drawn['{chart}']?.getOption().series[0].data.length > count", arg=before + 2
        )
        page.wait_for_function("(told) => document.querySelector('.decisions').innerText !== told", arg=told)
        with urllib.request.urlopen(own, timeout=60) as answer:
            assert b"live" in answer.read()
        training.kill()
        page.wait_for_selector(".state.is-broken-off", timeout=1000 * limit(4))
        assert wait_until(lambda: not answers(own), limit(10))
        shutil.rmtree(runs / "live")
        page.get_by_text("This run was deleted").wait_for(timeout=1000 * limit(4))
    finally:
        training.kill()
        training.communicate()


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except OSError:
        return False


def test_a_stranger_needs_the_token(visit, tmp_path):
    make_run(tmp_path / "hidden-run")
    server = WebServer(tmp_path, "--host", "0.0.0.0")
    try:
        token = server.address.partition("?token=")[2]
        assert len(token) >= 32 and server.said.count(token) == 1
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(server.url)
        assert refused.value.code == 401 and b"hidden-run" not in refused.value.read()
        one = visit(expected="401")
        page = one.open(server.url)
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button").click()
        page.get_by_text("not right").wait_for()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button").click()
        page.get_by_role("link", name="hidden-run").wait_for()
        page.wait_for_function("() => window.socket?.connected")
        cookies = one.context.cookies()
        assert cookies and all(cookie["httpOnly"] and cookie["sameSite"] == "Strict" for cookie in cookies)
        page.close()
    finally:
        server.stop()


def test_secrets_never_reach_the_page(server, runs, visit):
    one = visit(listening=True)
    for place in ("/", "/run/broken", "/compare?run=secret&run=broken", "/run/secret"):
        page = one.open(server.url + place)
        page.wait_for_function("() => window.socket?.connected")
    page.get_by_role("tab", name="Configuration").click()
    page.get_by_text("s3://***").wait_for()
    page.get_by_role("tab", name="Events").click()
    page.get_by_text("password: ***").wait_for()
    with (runs / "secret" / "events.jsonl").open("a") as out:
        out.write(json.dumps({"event": "news", "reason": f"token={SECRETS[2]}"}) + "\n")
    page.get_by_text("token=***").wait_for()
    everything = "\n".join(one.received)
    assert "password: ***" in everything and "token=***" in everything  # both channels were heard
    assert [secret for secret in SECRETS if secret in everything] == []


def test_a_browser_names_no_path(server, runs):
    (runs.parent / "outside").mkdir()
    shutil.copytree(runs / "done", runs.parent / "outside" / "run")
    for name in ("..", "%2e%2e", "..%2foutside%2frun", "%2Fetc", ".", "done%2f..%2fdone", "done%00"):
        for place in (f"/run/{name}", f"/data/{name}/curves", f"/data/{name}/metrics.csv"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(server.url + place)
            assert refused.value.code == 404, place


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_by_everybody_on_a_phone_too(server, runs, visit, scheme):
    one = visit(viewport={"width": 390, "height": 800}, color_scheme=scheme, has_touch=True, is_mobile=True)
    for place in ("/", "/run/done", "/compare?run=done&run=secret", "/compare"):
        page = one.open(server.url + place)
        page.wait_for_function("() => window.socket?.connected")
        assert page.evaluate("() => document.body.classList.contains('body--dark')") == (scheme == "dark")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390, place
        assert accessibility_problems(page) == [], place
        page.close()


def test_tabs_theme_and_drawing_work_by_keyboard(server, runs, visit):
    page = visit(color_scheme="light").open(f"{server.url}/run/done")
    page.get_by_role("tab", name="Curves").focus()
    page.keyboard.press("ArrowRight")
    assert "random" in page.get_by_role("tabpanel").inner_text()
    page.keyboard.press("ArrowLeft")
    wait_drawn(page, "Score/Measure")
    page.get_by_label("Log scale").check()
    page.get_by_label("X axis").select_option("hours")
    page.get_by_label("Smoothing").fill("0.5")
    wait_drawn(page, "Score/Measure", curves=2)
    drawn = page.evaluate(f"() => {VIEW}.drawn['Score/Measure'].getOption()")
    assert drawn["yAxis"][0]["type"] == "log" and len(drawn["series"]) == 2
    assert drawn["series"][0]["data"][-1] == [pytest.approx(5 / 3600), 50]
    page.get_by_role("button", name="Switch light and dark").press("Enter")
    page.wait_for_selector("body.body--dark")
    page.reload()
    page.wait_for_selector("body.body--dark")


def test_two_runs_are_drawn_over_each_other(server, runs, visit):
    page = visit().open(server.url)
    page.get_by_label("Choose done").check()
    page.get_by_label("Choose secret").check()
    page.get_by_role("link", name="Compare 2 chosen").click()
    wait_drawn(page, "Score/Measure", curves=2)


def test_a_missing_folder_is_said_in_one_line(ludus):
    code, _, err = ludus("web", "--runs", "none")
    assert code == 2 and "say where your runs are" in one_line(err)


def test_the_page_goes_on_after_a_restart(server, runs, visit):
    folder = make_run(runs / "goes-on")
    page = visit(expected="ERR_CONNECTION_REFUSED").open(f"{server.url}/run/goes-on")
    assert "500 of" in page.locator(".decisions").inner_text()
    server.stop()
    page.get_by_text("Connection lost").wait_for()
    with (folder / "metrics.jsonl").open("a") as out:
        out.write(json.dumps(metrics(60)) + "\n")
    server.start()
    page.get_by_text("600 of").wait_for()
    page.close()
    shutil.rmtree(folder)
