//! The compiler's wrapper, with a compiler that only says how it was called.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of the wrapper with a profile for `tokio` and for `plimsoll_tls` as its sources are.
struct Wrapper {
    directory: PathBuf,
}

impl Wrapper {
    fn new(name: &str) -> Self {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(fs::remove_dir_all(&directory));
        let sources = directory.join("crates/tls/src");
        fs::create_dir_all(&sources).unwrap();
        fs::create_dir(directory.join("pgo")).unwrap();
        for file in ["rustc.sh", "sources.sh", "trained"] {
            fs::copy(repository.join("pgo").join(file), directory.join("pgo").join(file)).unwrap();
        }
        fs::write(sources.join("lib.rs"), "//! Nothing.\n").unwrap();
        let compiler = directory.join("compiler");
        // Fails unless it gets a variable of this name, as cargo gives compilers of tests.
        fs::write(&compiler, "#!/usr/bin/env bash\nenv | grep -q ^CARGO_BIN_EXE_a-b= && echo \"$*\"\n")
            .unwrap();
        fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
        let this = Self { directory };
        let hash = this.output("pgo/sources.sh", &["crates/tls/src"], &[]);
        this.write("pgo/crates", &format!("plimsoll_tls 0b {}\ntokio 0a -\n", hash.trim()));
        this.write("pgo/release.profdata", "");
        this
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.directory.join(file), text).unwrap();
    }

    fn output(&self, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let mut command = Command::new(self.directory.join(program));
        command.args(arguments).envs(environment.iter().copied()).current_dir(&self.directory);
        command.env("CARGO_BIN_EXE_a-b", "/anywhere/a-b");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is added where this crate is compiled so.
    fn added(
        &self,
        name: &str,
        metadata: &str,
        source: &str,
        more: &[&str],
        training: Option<&str>,
    ) -> String {
        let metadata = format!("metadata={metadata}");
        let compiler = self.directory.join("compiler");
        let out = "/anywhere/target/release/deps";
        let mut arguments =
            vec![compiler.to_str().unwrap(), "--crate-name", name, source, "-C", "opt-level=3"];
        arguments.extend(["-C", &metadata, "--out-dir", out]);
        arguments.extend(more);
        let environment: Vec<_> = training.iter().map(|directory| ("PGO_TRAINING", *directory)).collect();
        let called = self.output("pgo/rustc.sh", &arguments, &environment);
        let ours = arguments[1..].join(" ");
        called.trim_end().strip_prefix(&ours).expect("what was asked for comes first").trim().to_owned()
    }

    fn tokio(&self, metadata: &str, more: &[&str]) -> String {
        self.added("tokio", metadata, "/registry/tokio/src/lib.rs", more, None)
    }

    fn tls(&self) -> String {
        self.added("plimsoll_tls", "0b", "crates/tls/src/lib.rs", &[], None)
    }

    fn profile_used(&self) -> String {
        format!("-Cprofile-use={}", self.directory.join("pgo/release.profdata").display())
    }
}

#[test]
fn a_crate_is_compiled_with_the_profile_of_just_this_build() {
    let wrapper = Wrapper::new("just_this_build");
    assert_eq!(wrapper.tokio("0a", &[]), wrapper.profile_used());
    assert_eq!(wrapper.tokio("0c", &[]), "", "another version, or other features");
    let other = |name, source| wrapper.added(name, "0a", source, &[], None);
    assert_eq!(other("serde", "/registry/serde/src/lib.rs"), "");
    for own in ["-Cprofile-generate=/tmp", "-Cprofile-use=mine", "-Cinstrument-coverage"] {
        assert_eq!(wrapper.tokio("0a", &[own]), "");
    }
    for (place, level) in [("/target/debug/deps", "opt-level=3"), ("/target/release/deps", "opt-level=0")] {
        let compiler = wrapper.directory.join("compiler");
        let arguments =
            ["--crate-name", "tokio", "lib.rs", "-C", level, "-C", "metadata=0a", "--out-dir", place];
        let called =
            wrapper.output("pgo/rustc.sh", &[&[compiler.to_str().unwrap()], &arguments[..]].concat(), &[]);
        assert_eq!(called.trim_end(), arguments.join(" "));
    }
}

#[test]
fn one_whose_sources_have_changed_is_compiled_without() {
    let wrapper = Wrapper::new("sources_have_changed");
    assert_eq!(wrapper.tls(), wrapper.profile_used());
    wrapper.write("crates/tls/src/tests.rs", "//! A test.\n");
    assert_eq!(wrapper.tls(), wrapper.profile_used());
    wrapper.write("crates/tls/src/more.rs", "//! More.\n");
    assert_eq!(wrapper.tls(), "");
}

#[test]
fn without_a_profile_everything_is_compiled() {
    let wrapper = Wrapper::new("without_a_profile");
    fs::remove_file(wrapper.directory.join("pgo/release.profdata")).unwrap();
    assert_eq!(wrapper.tokio("0a", &[]), "");
}

#[test]
fn in_training_what_is_to_be_trained_counts_and_is_listed() {
    let wrapper = Wrapper::new("in_training");
    let training = wrapper.directory.join("training");
    fs::create_dir(&training).unwrap();
    let training = training.to_str().unwrap();
    let counts = format!("-Cprofile-generate={training}/counts");
    let added = |name, source| wrapper.added(name, "0c", source, &[], Some(training));
    assert_eq!(added("tokio", "/registry/tokio/src/lib.rs"), counts);
    assert_eq!(added("plimsoll", "crates/cli/src/main.rs"), counts);
    assert_eq!(added("serde", "/registry/serde/src/lib.rs"), "");
    assert_eq!(fs::read_to_string(format!("{training}/crates")).unwrap(), "tokio 0c -\n");
}
