//! The files of the repository, or of a made-up one in tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Names of directories that hold nothing written by hand. In a worktree, `.git` is a file.
const SKIPPED: &[&str] = &[".git", ".venv", ".venv27", "__pycache__", "artifacts", "out", "target"];

/// Files by path from the root, with `/` as separator; the text is `None` for what is not UTF-8.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads all files below `root` but those in directories that are generated.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        tree.read_directory(root, "")?;
        Ok(tree)
    }

    fn read_directory(&mut self, directory: &Path, prefix: &str) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("cannot read {}: {e}", directory.display());
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else {
                return Err(format!("{}: a file name is not UTF-8; rename it", directory.display()));
            };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.read_directory(&entry.path(), &format!("{prefix}{name}/"))?;
            } else if kind.is_file() && !SKIPPED.contains(&name.as_str()) {
                let bytes = fs::read(entry.path()).map_err(failed)?;
                self.files.insert(format!("{prefix}{name}"), String::from_utf8(bytes).ok());
            }
        }
        Ok(())
    }

    /// A tree of the given paths and texts.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|&(path, text)| (path.to_owned(), Some(text.to_owned()))).collect();
        Self { files }
    }

    /// The text of the file at `path`.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether there is such a file or directory; the root is the empty path.
    pub(super) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let directory = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.files.contains_key(path) || self.files.keys().any(|p| p.starts_with(&directory))
    }

    /// The paths of all files, in order.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Path and text of all text files, by path.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Name and text of the text files directly in `directory` whose names end in `suffix`.
    pub(super) fn files_in<'a>(
        &'a self,
        directory: &'a str,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.texts().filter_map(move |(path, text)| {
            let name = path.strip_prefix(directory)?.strip_prefix('/')?;
            (!name.contains('/') && name.ends_with(suffix)).then_some((name, text))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_repository_without_what_is_generated() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let tree = Tree::read(root).unwrap();
        assert!(tree.text("xtask/src/tidy/tree.rs").unwrap().contains("fn read_directory"));
        assert!(tree.exists("xtask/src") && tree.exists("xtask/src/") && tree.exists(""));
        assert!(!tree.exists("target") && !tree.exists(".git") && !tree.exists("xtask/sr"));
    }

    #[test]
    fn lists_only_the_files_directly_in_a_directory() {
        let tree = Tree::of(&[("a/x.rs", ""), ("a/y.md", ""), ("a/b/z.rs", ""), ("ab/w.rs", "")]);
        let names: Vec<_> = tree.files_in("a", ".rs").map(|(name, _)| name).collect();
        assert_eq!(names, ["x.rs"]);
    }
}
