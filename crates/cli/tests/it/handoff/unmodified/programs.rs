//! How servers are started beside a back-end: their configuration, and the commands.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_lab::NodeHandle;

use crate::handoff::bed::ORIGIN_PORT;

const ASYNCIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/handoff/unmodified/files.py");
const GO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/handoff/unmodified/files.go");
const PHP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/handoff/unmodified/files.php");

/// What Go has compiled before: its library takes a while.
const GO_CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/go");

/// Where a server runs.
pub(super) struct Place<'a> {
    pub(super) node: NodeHandle<'a>,
    pub(super) directory: &'a Path,
    pub(super) index: usize,
}

impl Place<'_> {
    /// A path that is this server's alone.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}{}", self.index))
    }

    /// Where the server gets what agents hand in.
    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join(format!("b{}.sock", self.index))
    }

    /// Where the program behind it listens.
    pub(super) fn inner(&self) -> PathBuf {
        self.directory.join(format!("inner{}.sock", self.index))
    }

    fn www(&self) -> PathBuf {
        self.directory.join("www")
    }

    /// Where it is checked, and gets what is proxied.
    fn listen(&self) -> String {
        format!("{}:{ORIGIN_PORT}", self.node.address())
    }

    /// Writes a configuration. In it, SOCKET, INNER, LISTEN, ADDRESS, PORT, WWW, DIRECTORY and INDEX stand for what they are here.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        let is = |path: PathBuf| path.display().to_string();
        let text = text.replace("SOCKET", &is(self.socket())).replace("INNER", &is(self.inner()));
        let text = text.replace("LISTEN", &self.listen()).replace("WWW", &is(self.www()));
        let text = text.replace("ADDRESS", &self.node.address().to_string());
        let text = text.replace("PORT", &ORIGIN_PORT.to_string());
        let text = text.replace("DIRECTORY", &self.directory.display().to_string());
        std::fs::write(&file, text.replace("INDEX", &self.index.to_string())).unwrap();
        file
    }

    /// The server of Python's library, on these places.
    fn python(&self, event_loop: &str, processes: usize, places: &[&str]) -> Command {
        let mut command = self.node.command("/usr/bin/python3");
        command.arg(ASYNCIO).args([event_loop, &processes.to_string()]).arg(self.www()).args(places);
        command
    }

    /// The program behind a server that proxies.
    fn behind(&self) -> Command {
        self.python("asyncio", 1, &[self.inner().to_str().unwrap()])
    }
}

pub(super) fn asyncio(place: &Place<'_>) -> Vec<Command> {
    vec![place.python("asyncio", 2, &[place.socket().to_str().unwrap(), &place.listen()])]
}

/// With a TCP port in its own eyes.
pub(super) fn uvloop(place: &Place<'_>) -> Vec<Command> {
    let mut command = place.python("uvloop", 1, &["127.0.0.1:8081", &place.listen()]);
    command.env("PLIMSOLL_SHIM_LISTEN", format!("8081={}", place.socket().display()));
    vec![command]
}

pub(super) fn lighttpd(place: &Place<'_>) -> Vec<Command> {
    let file = place.write(
        "lighttpd",
        "server.document-root = \"WWW\"\nserver.bind = \"ADDRESS\"\nserver.port = PORT\nindex-file.names = (\"index.html\")\n\
         server.errorlog = \"DIRECTORY/lighttpdINDEX.log\"\nserver.max-keep-alive-idle = 60\n\
         server.max-keep-alive-requests = 10000\n$SERVER[\"socket\"] == \"SOCKET\" { }\n",
    );
    let mut command = place.node.command("lighttpd");
    command.arg("-D").arg("-f").arg(file);
    vec![command]
}

pub(super) fn varnish(place: &Place<'_>) -> Vec<Command> {
    let file = place.write(
        "varnish",
        "vcl 4.1;\nbackend files { .path = \"INNER\"; }\n\
         sub vcl_deliver { set resp.http.X-Client = client.ip; }\n",
    );
    let mut command = place.node.command("varnishd");
    command.args(["-F", "-a", "127.0.0.1:8081", "-a", &place.listen(), "-p", "timeout_idle=60"]);
    command.args(["-s", "malloc,64m", "-n"]).arg(place.path("varnish.d")).arg("-f").arg(file);
    command.env("PLIMSOLL_SHIM_LISTEN", format!("8081={}", place.socket().display()));
    vec![place.behind(), command]
}

pub(super) fn haproxy(place: &Place<'_>) -> Vec<Command> {
    let file = place.write(
        "haproxy",
        "global\n nbthread 2\n maxconn 1000\ndefaults\n mode http\n timeout connect 60s\n timeout client 60s\n\
         \x20timeout server 60s\n option splice-response\nlisten files\n bind unix@SOCKET\n bind LISTEN\n\
         \x20http-response set-header X-Client %[src]\n server inner unix@INNER pool-max-conn 0\n",
    );
    let mut command = place.node.command("haproxy");
    command.arg("-db").arg("-f").arg(file);
    vec![place.behind(), command]
}

pub(super) fn php(place: &Place<'_>) -> Vec<Command> {
    let script = place.write("php", &std::fs::read_to_string(PHP).unwrap());
    let pool = place.write(
        "fpm",
        "[global]\nerror_log = DIRECTORY/fpmINDEX.log\n[www]\nuser = www-data\nlisten = INNER\nlisten.mode = 0666\n\
         pm = static\npm.max_children = 4\nsecurity.limit_extensions =\n",
    );
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|what| format!("{what}_temp_path DIRECTORY/{what}INDEX;"))
        .collect();
    let nginx = place.write(
        "nginx",
        &format!(
            "daemon off; user root; worker_processes 2; pid DIRECTORY/nginxINDEX.pid; events {{ worker_connections 1024; }}
             http {{ {temporary} access_log off; server {{ listen unix:SOCKET; listen LISTEN; root WWW;
               location / {{ fastcgi_pass unix:INNER; fastcgi_param SCRIPT_FILENAME {}; fastcgi_param DOCUMENT_ROOT WWW;
                 fastcgi_param SCRIPT_NAME $uri; fastcgi_param REQUEST_METHOD $request_method;
                 fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param CONTENT_TYPE $content_type;
                 fastcgi_param REMOTE_ADDR $remote_addr; }} location = / {{ return 200; }} }} }}",
            script.display()
        ),
    );
    let mut fpm = place.node.command("php-fpm8.2");
    fpm.arg("-F").arg("-R").arg("-y").arg(pool);
    let mut command = place.node.command("nginx");
    command.arg("-e").arg(place.path("nginx.err")).arg("-c").arg(nginx);
    vec![fpm, command]
}

pub(super) fn go(place: &Place<'_>) -> Vec<Command> {
    go_at(place, &[&place.listen()])
}

pub(super) fn go_on_unix(place: &Place<'_>) -> Vec<Command> {
    go_at(place, &[place.socket().to_str().unwrap(), &place.listen()])
}

fn go_at(place: &Place<'_>, places: &[&str]) -> Vec<Command> {
    let program = place.directory.join("go-files");
    if !program.exists() {
        let mut build = Command::new("go");
        build.args(["build", "-o"]).arg(&program).arg(GO).current_dir(place.directory);
        // One file and the library: nothing is fetched.
        build
            .env("GOCACHE", GO_CACHE)
            .env("CGO_ENABLED", "0")
            .env("GOTOOLCHAIN", "local")
            .env("GO111MODULE", "off");
        assert!(build.status().unwrap().success());
    }
    let mut command = place.node.command(program);
    command.arg(place.www()).args(places);
    vec![command]
}

pub(super) fn caddy(place: &Place<'_>) -> Vec<Command> {
    let file = place.write(
        "caddy",
        "{\nadmin off\nauto_https off\ngrace_period 1s\n}\nhttp://:PORT {\nbind ADDRESS\nroot * WWW\n\
         @post method POST\nrespond @post taken 201\nfile_server\n}\n",
    );
    let mut command = place.node.command("caddy");
    command
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(file)
        .env("XDG_DATA_HOME", place.path("caddy.d"));
    vec![command]
}
