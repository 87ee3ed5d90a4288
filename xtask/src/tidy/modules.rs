//! The modules of a crate, and which of its files use which: the arrows between files.
//!
//! A path that starts with `crate`, `self`, `super`, a child module or an imported name is followed to the file that
//! defines what it names, through `use` and `pub use`. So a parent that only declares and re-exports its children does
//! not use them, and a child that names a sibling through `super::` uses the sibling.

mod parse;

use std::collections::{BTreeMap, BTreeSet};

use super::tree::Tree;

/// How many imports are followed from one name: more is a circle of imports.
const MOST_IMPORTS: usize = 32;

/// A module: a file, or an inline module within one.
#[derive(Debug, Default)]
struct Module {
    /// Index into the list of files.
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Paths that a `use` brings into scope, by the name that they get here.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths whose items are all brought into scope.
    globs: Vec<Vec<String>>,
    /// Names of the items that are defined here.
    items: BTreeSet<String>,
    /// Paths that are used here, those of a `use` that is no re-export included.
    uses: Vec<Vec<String>>,
}

/// The files of one crate and their arrows.
#[derive(Debug, Default)]
pub(crate) struct CrateFiles {
    pub(crate) files: Vec<String>,
    modules: Vec<Module>,
}

impl CrateFiles {
    /// Reads the crate whose root module is the file `root`, test modules left out.
    pub(crate) fn read(tree: &Tree, root: &str) -> Result<Self, String> {
        let mut read = Self::default();
        read.add_file(tree, root, None)?;
        Ok(read)
    }

    /// Adds the file at `path` and the files of its child modules; the index of its module.
    fn add_file(&mut self, tree: &Tree, path: &str, parent: Option<usize>) -> Result<usize, String> {
        let text = tree.text(path).ok_or_else(|| format!("{path}: there is no such file"))?;
        let parsed = parse::parse(text).map_err(|error| format!("{path}: {error}"))?;
        self.files.push(path.to_owned());
        let file = self.files.len() - 1;
        let directory = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix("/lib.rs"));
        let directory = directory.or_else(|| path.strip_suffix("/main.rs"));
        let directory = directory.or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
        self.add_module(tree, file, directory, parsed, parent)
    }

    fn add_module(
        &mut self,
        tree: &Tree,
        file: usize,
        directory: &str,
        parsed: parse::Parsed,
        parent: Option<usize>,
    ) -> Result<usize, String> {
        let parse::Parsed { imports, globs, items, uses, declared, inline } = parsed;
        let module = Module { file, parent, children: BTreeMap::new(), imports, globs, items, uses };
        self.modules.push(module);
        let index = self.modules.len() - 1;
        for name in declared {
            let (flat, nested) = (format!("{directory}/{name}.rs"), format!("{directory}/{name}/mod.rs"));
            let path = if tree.text(&flat).is_some() { flat } else { nested };
            let child = self.add_file(tree, &path, Some(index))?;
            self.modules[index].children.insert(name, child);
        }
        for (name, parsed) in inline {
            let child = self.add_module(tree, file, &format!("{directory}/{name}"), parsed, Some(index))?;
            self.modules[index].children.insert(name, child);
        }
        Ok(index)
    }

    /// For each file the other files that it uses, in order.
    pub(crate) fn arrows(&self) -> Vec<BTreeSet<usize>> {
        let mut arrows = vec![BTreeSet::new(); self.files.len()];
        for (index, module) in self.modules.iter().enumerate() {
            for path in &module.uses {
                if let Some(to) = self.file_of(index, path, MOST_IMPORTS)
                    && to != module.file
                {
                    arrows[module.file].insert(to);
                }
            }
        }
        arrows
    }

    /// The file that defines what `path` names in a module; `None` where that is not of this crate.
    fn file_of(&self, from: usize, path: &[String], left: usize) -> Option<usize> {
        let (mut at, mut rest) = (from, path);
        let first = rest.first()?;
        match first.as_str() {
            "crate" => {
                while let Some(parent) = self.modules[at].parent {
                    at = parent;
                }
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {}
            name if self.brings(at, name, left) => {}
            _ => return None,
        }
        while let Some(name) = rest.first() {
            let module = &self.modules[at];
            if name == "super" {
                at = module.parent?;
            } else if let Some(&child) = module.children.get(name) {
                at = child;
            } else if let Some(path) = module.imports.get(name) {
                let whole = [&path[..], &rest[1..]].concat();
                return self.file_of(at, &whole, left.checked_sub(1)?);
            } else if !module.items.contains(name)
                && let Some(glob) = self.glob_with(at, name, left)
            {
                let whole = [&["self".to_owned()], rest].concat();
                return self.file_of(glob, &whole, left.checked_sub(1)?);
            } else {
                break;
            }
            rest = &rest[1..];
        }
        Some(self.modules[at].file)
    }

    /// Whether a module has a child module or an import of this name, or gets it by a glob.
    fn brings(&self, at: usize, name: &str, left: usize) -> bool {
        let module = &self.modules[at];
        module.children.contains_key(name)
            || module.imports.contains_key(name)
            || self.glob_with(at, name, left).is_some()
    }

    /// The module of which a glob import brings this name.
    fn glob_with(&self, at: usize, name: &str, left: usize) -> Option<usize> {
        let left = left.checked_sub(1)?;
        self.modules[at].globs.iter().find_map(|path| {
            let target = self.module_of(at, path)?;
            let module = &self.modules[target];
            let has = module.items.contains(name) || self.brings(target, name, left);
            has.then_some(target)
        })
    }

    /// The module that `path` names, if it names one.
    fn module_of(&self, from: usize, path: &[String]) -> Option<usize> {
        let mut at = from;
        for (index, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" if index == 0 => {
                    while let Some(parent) = self.modules[at].parent {
                        at = parent;
                    }
                }
                "self" if index == 0 => {}
                "super" => at = self.modules[at].parent?,
                name => at = *self.modules[at].children.get(name)?,
            }
        }
        Some(at)
    }
}
