"""What other pages, other users and other machines may try on the wall: refused before anything is looked at."""

import json
import socket

import httpx2
import pytest
from mcp_process import run
from wall_process import Wall

from boardfiles import Files
from conftest import add

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    files = Files(tmp_path_factory.mktemp("board"))
    add(files.board(), "a", description="SECRET of the board")
    return files


@pytest.fixture(scope="module")
def wall(files):
    with Wall(files.folder) as wall:
        yield wall


DATA = ["/api/events", "/api/openapi.json", "/api/actions?task=a", "/api/lanes", "/api/log?session=x", "/metrics"]


def untouched(files):
    return json.loads((files.path / "a.json").read_text())["status"] == "pending"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example", "192.168.1.7:{port}",
     "user@127.0.0.1.evil.example", "", "[::ffff:10.0.0.1]:{port}", "localhost:{port}@evil.example"],
)  # fmt: skip
def test_a_name_that_was_pointed_here_is_not_ours(wall, host):
    """DNS rebinding: the attacker's page is of the same origin as its own name, which now resolves to loopback."""
    for path in ["/", "/app.js", *DATA]:
        answer = wall.client.get(path, headers={"Host": host.format(port=wall.port)})
        assert answer.status_code in (400, 421) and "SECRET" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "127.0.0.1"])
def test_loopback_by_any_of_its_names_is_ours(wall, host):
    assert wall.client.get("/api/openapi.json", headers={"Host": host.format(port=wall.port)}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost",
        "https://evil.example:{port}",
        "x",
        "http://[",
        "",
    ],
)
def test_a_page_of_another_origin_is_refused_with_the_right_token_too(wall, files, origin):
    headers = {"Origin": origin.format(port=wall.port)}
    answer = wall.client.post("/api/verbs/claim_task", json={"task_id": "a"}, headers=headers)
    assert answer.status_code == 403 and answer.json()["error"]["code"] == "wrong_origin"
    assert untouched(files)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_says_comes_from_another_site_is_refused(wall, site):
    assert wall.client.get("/api/lanes", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert wall.client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 200, "a link to it may stand anywhere"


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer x", "Basic {token}", "{token}", "bearer {token}x", "Bearer é"]
)
def test_without_the_token_nothing_is_told(wall, files, authorization):
    headers = {"Authorization": authorization.format(token=wall.token).encode()}
    for path in DATA:
        with wall.bare.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 401
    told = wall.bare.post("/api/verbs/claim_task", json={"task_id": "a"}, headers=headers)
    assert told.status_code == 401 and untouched(files)


def test_the_token_counts_in_its_header_alone(wall):
    assert wall.bare.get(f"/api/lanes?token={wall.token}").status_code == 401
    assert wall.bare.get("/api/lanes", headers={"Cookie": f"token={wall.token}"}).status_code == 401
    assert "set-cookie" not in wall.client.get("/").headers


def test_two_starts_have_two_tokens(wall, files):
    with Wall(files.folder) as other:
        assert other.token != wall.token and len(wall.token) >= 32
        assert other.bare.get("/api/lanes", headers={"Authorization": f"Bearer {wall.token}"}).status_code == 401


def test_every_answer_forbids_what_a_page_could_be_made_to_do(wall):
    for answer in (
        wall.bare.get("/"),
        wall.bare.get("/app.js"),
        wall.bare.get("/nothing"),
        wall.client.get("/api/lanes"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "server" not in answer.headers


def test_no_other_origin_is_ever_allowed(wall):
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = wall.bare.options("/api/verbs/claim_task", headers=headers)
    assert answer.status_code == 403 and not [n for n in answer.headers if n.startswith("access-control")]


def test_the_page_itself_holds_no_data(wall):
    assert "SECRET" not in wall.bare.get("/").text


@pytest.mark.parametrize(
    "path",
    ["/../app.py", "/..%2fapp.py", "/%2e%2e/app.py", "/vendor/../../app.py", "//etc/passwd", "/..%5capp.py", "/%00", "/app.js%00.css"],
)  # fmt: skip
def test_no_path_leads_out_of_the_pages_own_files(wall, path):
    with socket.create_connection(("127.0.0.1", wall.port)) as wire:
        wire.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    assert answer.split()[1] in (b"400", b"404") and b"import" not in answer and b"root:" not in answer


def test_a_form_of_another_page_cannot_be_taken_for_json(wall, files):
    """A form sends no JSON, and JSON from elsewhere would need a permission that is never given."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = wall.client.post("/api/verbs/claim_task", content=b'{"task_id": "a"}', headers={"Content-Type": kind})
        assert answer.status_code == 400 and untouched(files)
        error = answer.json()["error"]
        said = f"says that it is {kind!r}" if kind else "does not say what it is"
        assert error["message"] == f"the request {said}; it must be JSON"
        assert error["next"] == "send the header Content-Type: application/json"


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_verb_is_called_by_post_alone(wall, files, method):
    answer = wall.client.request(method, "/api/verbs/claim_task?task_id=a")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST") and untouched(files)
    assert answer.json()["error"]["message"] == f"claim_task is called by POST, not by {method}"
    answer = wall.client.request(method, "/api/verbs/no_such_verb")
    assert answer.status_code == 404 and "no_such_verb" in answer.json()["error"]["message"]


def test_too_large_a_request_is_refused_whatever_it_says_of_its_length(wall):
    large = b'{"subject": "large"' + b" " * 2_000_000 + b"}"
    kind = {"Content-Type": "application/json"}
    assert wall.client.post("/api/verbs/create_task", content=large, headers=kind).status_code == 400
    pieces = iter([large[n : n + 65536] for n in range(0, len(large), 65536)])
    answer = wall.client.post("/api/verbs/create_task", content=pieces, headers=kind)
    assert answer.status_code == 400 and "at most 1048576 bytes" in answer.json()["error"]["message"]
    assert wall.ask("list_tasks").json()["data"]["total"] == 1


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"task_id": NaN}', b"\xff\xfe", b"{", b"null", b"3", b'{"task_id": {"a": []}}', b'{"actor": "root"}',
     b'{"task_id": "a", "as": "root"}', b'{"task_id": "\\ud800"}'],
)  # fmt: skip
def test_a_broken_request_is_a_refusal_and_the_server_lives(wall, files, body):
    answer = wall.client.post("/api/verbs/claim_task", content=body, headers={"Content-Type": "application/json"})
    if body != b"null":  # which asks for the best task
        assert answer.status_code in (400, 404) and not answer.json()["ok"] and untouched(files)
    else:
        wall.ask("release_task", task_id="a")


def test_a_websocket_is_not_answered(wall):
    with socket.create_connection(("127.0.0.1", wall.port)) as wire:
        wire.sendall(
            b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert b" 101 " not in wire.recv(1000)


def other_address():
    """An address of this machine that is not loopback, where it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address = probe.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    return address


def test_the_network_does_not_reach_it_unless_asked_for(wall):
    with pytest.raises(OSError):
        socket.create_connection((other_address(), wall.port), timeout=2)


def test_an_address_given_on_purpose_is_served_with_a_warning(files):
    address = other_address()
    with Wall(files.folder, "--remote", address) as wall:
        assert wall.origin == f"http://{address}:{wall.port}"
        assert wall.client.get("/api/lanes").status_code == 200
        assert wall.bare.get("/api/lanes").status_code == 401
        assert wall.client.get("/api/lanes", headers={"Host": "evil.example"}).status_code == 421
        wall.process.terminate()
        assert "not encrypted" in wall.process.stderr.read()


def test_an_address_that_is_not_ours_is_a_clear_refusal(files):
    done = run(files.folder, "--board", str(files.folder), "web", "--remote", "192.0.2.1")
    assert done.returncode == 2 and "cannot be bound" in done.stderr


def test_hostile_file_names_and_sessions_reach_no_other_file(wall):
    for session in ("../../a", "/etc/passwd", "\x00", "*"):
        assert wall.get("log", session=session)["lines"] == []


def test_a_client_of_another_http_version_or_none_does_no_harm(wall):
    for line in (b"GET / HTTP/0.9\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", wall.port), timeout=5) as wire:
            wire.sendall(line)
            assert b" 200 " not in wire.recv(1000)
    assert httpx2.get(wall.origin).status_code == 200
