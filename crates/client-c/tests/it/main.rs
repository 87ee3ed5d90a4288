//! The interface as a C program sees it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_client::{Key, LoadGauge, LoadResponder};

/// The directory that has the shared library which was built with this test.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let directory = program.parent().unwrap().to_owned();
    assert!(directory.join("libplimsoll_c.so").exists(), "no library in {}", directory.display());
    directory
}

fn compile(into: &Path, source: &Path) -> PathBuf {
    let program = into.join(source.file_stem().unwrap());
    let mut compile = Command::new("cc");
    compile
        .args(["-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"])
        .arg(&program);
    compile.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include")).arg(source);
    compile.arg("-L").arg(libraries()).arg("-lplimsoll_c");
    let output = compile.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).env("LD_LIBRARY_PATH", libraries()).output().unwrap()
}

/// Answers a line with its name, until the process ends.
fn serve(name: &'static str, served: Arc<AtomicU32>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let answer = |stream: &mut TcpStream| -> std::io::Result<()> {
                BufReader::new(&*stream).read_line(&mut String::new())?;
                served.fetch_add(1, Ordering::Relaxed);
                stream.write_all(format!("{name} says hello\n").as_bytes())
            };
            // Who asked may have gone away.
            drop(answer(&mut stream));
        }
    });
    port
}

#[test]
fn the_example_calls_a_service() {
    let directory = tempfile::tempdir().unwrap();
    let key_file = directory.path().join("key");
    std::fs::write(&key_file, "07".repeat(32)).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let key = Key::load(&key_file).unwrap();
    let served: [Arc<AtomicU32>; 3] = std::array::from_fn(|_| Arc::default());
    let responders: [LoadResponder; 3] = std::array::from_fn(|_| {
        LoadResponder::start("127.0.0.1:0".parse().unwrap(), &key, LoadGauge::new()).unwrap()
    });
    let mut text = format!(
        "[[services]]\nname = \"image_store\"\npolicy = \"random_polling:size=2\"\n\
         load_polling = {{ key_file = {:?}, discard_after_ms = 20 }}\n",
        key_file.display().to_string()
    );
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        let port = serve(name, Arc::clone(&served[number]));
        let partitions = if name == "c" { "[\"1\"]" } else { "[\"0\", \"1\"]" };
        text += &format!(
            "[[services.endpoints]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\nload_address = \"{}\"\n\
             partitions = {partitions}\n",
            responders[number].address()
        );
    }
    let configuration = directory.path().join("services.toml");
    std::fs::write(&configuration, text).unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = compile(directory.path(), &manifest.join("example/call.c"));
    let configuration = configuration.to_str().unwrap();

    let output = run(&program, &[configuration, "image_store", "0", "20"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.lines().count(), 20);
    assert!(printed.lines().all(|line| line == "a: a says hello" || line == "b: b says hello"), "{printed}");
    let counts = served.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert_eq!((counts[0] + counts[1], counts[2]), (20, 0));
    let answered: u64 = responders.iter().map(|responder| responder.counts().taken).sum();
    assert!(answered > 0, "loads were asked for");

    let output = run(&program, &[configuration, "photo_album", "0", "1"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("status 2"));
    std::fs::write(directory.path().join("wrong"), "[[services]]\nnaem = 1\n").unwrap();
    let output = run(&program, &[directory.path().join("wrong").to_str().unwrap(), "s", "", "1"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("naem"), "{output:?}");
}

#[test]
fn wrong_arguments_are_answered_and_harm_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = compile(directory.path(), &manifest.join("tests/it/wrong_arguments.c"));
    let output = run(&program, &[]);
    assert!(output.status.success(), "{output:?}");
}
