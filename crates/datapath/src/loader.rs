//! Loads a compiled object, reusing maps of an earlier instance that fit.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Once;

use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, MapHandle, MapMut, MapType, ObjectBuilder, OpenMapMut, OpenObject,
    PrintLevel,
};
use tracing::{debug, info, warn};

use crate::batch;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::pins::Pins;

/// An object file, aligned as its format requires.
#[repr(C, align(8))]
pub(crate) struct Aligned<T: ?Sized>(pub(crate) T);

/// What to load.
pub(crate) struct LoadPlan<'a> {
    /// The compiled object.
    pub(crate) object: &'a [u8],
    /// Maps that outlive the process.
    pub(crate) pinned: &'a [&'a str],
    /// Maps whose size the user chooses.
    pub(crate) sizes: &'a [(&'a str, u32)],
    /// What was loaded before, whose maps of the same names this object uses as well.
    pub(crate) beside: Option<&'a Loaded>,
}

/// What has been loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    maps: BTreeMap<String, MapHandle>,
    programs: BTreeMap<String, OwnedFd>,
    /// Maps of an earlier instance that others have replaced, with these: its programs may still change the old ones.
    moved: Vec<MovedMap>,
}

/// A map whose entries were copied to another.
#[derive(Debug)]
pub(crate) struct MovedMap {
    old: MapHandle,
    new: MapHandle,
}

impl MovedMap {
    /// Copies what the earlier instance's programs have entered since. For when they run no more.
    pub(crate) fn catch_up(&self) -> Result<(), DatapathError> {
        copy(&self.old, &self.new, MapFlags::NO_EXIST)
    }
}

impl Loaded {
    /// Moves to the caller what was copied.
    pub(crate) fn take_moved(&mut self) -> Vec<MovedMap> {
        std::mem::take(&mut self.moved)
    }

    /// Moves the map `name` to the caller.
    pub(crate) fn take_map(&mut self, name: &str) -> Result<MapHandle, DatapathError> {
        self.maps
            .remove(name)
            .ok_or_else(|| DatapathError::Unexpected(format!("the object has no map {name}")))
    }

    /// Moves the program `name` to the caller.
    pub(crate) fn take_program(&mut self, name: &str) -> Result<OwnedFd, DatapathError> {
        let program = self.programs.remove(name);
        program.ok_or_else(|| DatapathError::Unexpected(format!("the object has no program {name}")))
    }
}

/// Keeps libbpf from writing to standard error.
fn log_quietly() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        libbpf_rs::set_print(Some((
            PrintLevel::Debug,
            |_, line| debug!(target: "libbpf", "{}", line.trim_end()),
        )));
    });
}

/// Loads `plan` with maps pinned at `pins`, or with unpinned maps, which vanish with their descriptors.
pub(crate) fn load(plan: &LoadPlan<'_>, pins: Option<&Pins>) -> Result<Loaded, DatapathError> {
    log_quietly();
    let failed = |what: &str, error: &libbpf_rs::Error| {
        DatapathError::of_bpf(format!("{what} the packet programs failed"), BPF_CAPABILITIES, error)
    };
    let mut open =
        ObjectBuilder::default().open_memory(plan.object).map_err(|error| failed("reading", &error))?;
    let mut moving = prepare_maps(&mut open, plan, pins)?;
    let mut object = open.load().map_err(|error| failed("loading", &error))?;
    let mut loaded = Loaded { maps: BTreeMap::new(), programs: BTreeMap::new(), moved: Vec::new() };
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let handle = MapHandle::try_from(&*map).map_err(|error| failed("keeping the maps of", &error))?;
        let old = moving.remove(&name);
        if let Some(old) = &old {
            copy(old, &handle, MapFlags::ANY)?;
        }
        if let Some(pins) = pins.filter(|_| plan.pinned.contains(&name.as_str()))
            && let Some(path) = pins.path(&name)
        {
            pin(&mut map, &path, old.is_some())?;
            pins.give(&path)?;
        }
        if let Some(old) = old {
            let new = MapHandle::try_from(&handle).map_err(|error| failed("keeping the maps of", &error))?;
            loaded.moved.push(MovedMap { old, new });
        }
        loaded.maps.insert(name, handle);
    }
    for program in object.progs() {
        let descriptor = program.as_fd().try_clone_to_owned();
        let descriptor = descriptor
            .map_err(|source| DatapathError::Failed { what: "cannot keep a program".to_owned(), source })?;
        loaded.programs.insert(program.name().to_string_lossy().into_owned(), descriptor);
    }
    Ok(loaded)
}

/// Sets the sizes of maps and reuses pinned ones that fit. Returns the pinned maps of another size, whose
/// contents must be copied.
fn prepare_maps(
    open: &mut OpenObject,
    plan: &LoadPlan<'_>,
    pins: Option<&Pins>,
) -> Result<BTreeMap<String, MapHandle>, DatapathError> {
    let mut moving = BTreeMap::new();
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if let Some((_, entries)) = plan.sizes.iter().find(|(sized, _)| *sized == name) {
            map.set_max_entries(*entries).map_err(|error| {
                DatapathError::of_bpf(
                    format!("{name} cannot have {entries} entries"),
                    BPF_CAPABILITIES,
                    &error,
                )
            })?;
        }
        if let Some(beside) = plan.beside.and_then(|beside| beside.maps.get(&name)) {
            map.reuse_fd(beside.as_fd()).map_err(|error| {
                DatapathError::of_bpf(format!("{name} cannot be shared"), BPF_CAPABILITIES, &error)
            })?;
        } else if let Some(path) =
            pins.filter(|_| plan.pinned.contains(&name.as_str())).and_then(|p| p.path(&name))
            && let Some(old) = reuse(&mut map, &path)?
        {
            moving.insert(name, old);
        }
    }
    Ok(moving)
}

/// Makes `map` reuse the one pinned at `path`, if that fits. Returns the pinned one if it has another size;
/// removes one of another type.
fn reuse(map: &mut OpenMapMut<'_>, path: &Path) -> Result<Option<MapHandle>, DatapathError> {
    if !path.exists() {
        return Ok(None);
    }
    let what = format!("cannot take over the map at {}", path.display());
    let failed = |error: &libbpf_rs::Error| DatapathError::of_bpf(what.as_str(), BPF_CAPABILITIES, error);
    let pinned = MapHandle::from_pinned_path(path).map_err(|error| failed(&error))?;
    let wanted = (map.map_type(), map.key_size(), map.value_size());
    let found = (pinned.map_type(), pinned.key_size(), pinned.value_size());
    let (wanted_entries, found_entries) = (map.max_entries(), pinned.max_entries());
    let can_move = matches!(wanted.0, MapType::Hash | MapType::LruHash);
    if wanted != found || (wanted_entries != found_entries && !can_move) {
        warn!(
            "the map at {} does not fit and is replaced by an empty one: (type, key, value) and entries are {found:?} and \
             {found_entries}, and are to be {wanted:?} and {wanted_entries}",
            path.display()
        );
        let removed = std::fs::remove_file(path);
        return removed.map(|()| None).map_err(|error| DatapathError::of(what, BPF_CAPABILITIES, error));
    }
    if wanted_entries != found_entries {
        let mut count = 0_u32;
        let counted = batch::for_each(&pinned, |_, _| count += 1);
        counted.map_err(|error| DatapathError::of(what.as_str(), BPF_CAPABILITIES, error))?;
        // One that pushes entries out does so before the last place is taken.
        let spare = if wanted.0 == MapType::LruHash { wanted_entries / 4 } else { 0 };
        if count <= wanted_entries - spare {
            return Ok(Some(pinned));
        }
        warn!(
            "{} keeps {found_entries} places: {count} are taken, too many for {wanted_entries}",
            path.display()
        );
    }
    info!("taking over the map at {}", path.display());
    map.reuse_fd(pinned.as_fd()).map(|()| None).map_err(|error| failed(&error))
}

/// Pins `map`, replacing another if asked to.
fn pin(map: &mut MapMut<'_>, path: &Path, replace: bool) -> Result<(), DatapathError> {
    let what = || format!("cannot pin a map at {}", path.display());
    if replace {
        std::fs::remove_file(path).map_err(|error| DatapathError::of(what(), BPF_CAPABILITIES, error))?;
    }
    if path.exists() {
        return Ok(());
    }
    map.pin(path).map_err(|error| DatapathError::of_bpf(what(), BPF_CAPABILITIES, &error))
}

/// Copies the entries of `old` to `new`: all, or those that are not there (`NO_EXIST`). Concurrent changes by programs may be lost.
fn copy(old: &MapHandle, new: &MapHandle, flags: MapFlags) -> Result<(), DatapathError> {
    let what = "cannot move what is in a map to one of another size";
    let mut result = Ok(());
    let copied = batch::for_each(old, |key, value| {
        if let Err(error) = new.update(key, value, flags)
            && !(flags == MapFlags::NO_EXIST && error.kind() == ErrorKind::AlreadyExists)
        {
            result = Err(DatapathError::of_bpf(what, BPF_CAPABILITIES, &error));
        }
    });
    copied.map_err(|error| DatapathError::of(what, BPF_CAPABILITIES, error)).and(result)
}
