//! The connections in the switch's tables.

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};

use super::layout::{self, ConnEntry, ConnTable, SwitchConn};
use super::{Switch, failed};
use crate::batch;
use crate::error::{BPF_CAPABILITIES, DatapathError};

impl Switch {
    fn table_of(&self, table: ConnTable) -> &MapHandle {
        match table {
            ConnTable::Established => &self.conns,
            ConnTable::Opening => &self.opening,
            ConnTable::Hashed => &self.hashed,
        }
    }

    /// Calls `visit` for each connection in a table, reading some thousand per system call. Connections that come or go meanwhile
    /// may be left out.
    ///
    /// # Errors
    /// The kernel's.
    pub fn for_each(
        &self,
        table: ConnTable,
        mut visit: impl FnMut(SwitchConn, ConnEntry),
    ) -> Result<(), DatapathError> {
        let visit = |key: &[u8], value: &[u8]| {
            if let Some(conn) = SwitchConn::at(key, 0) {
                visit(conn, ConnEntry::from_bytes(value));
            }
        };
        batch::for_each(self.table_of(table), visit)
            .map_err(|error| DatapathError::of("cannot list the connections", BPF_CAPABILITIES, error))
    }

    /// What is known of a connection, in the table that it stands in.
    ///
    /// # Errors
    /// The kernel's.
    pub fn get(&self, conn: &SwitchConn) -> Result<Option<(ConnTable, ConnEntry)>, DatapathError> {
        let mut bytes = [0; layout::CONN_BYTES];
        // Where it is established it may be opening, too, for a moment.
        for table in [ConnTable::Established, ConnTable::Opening, ConnTable::Hashed] {
            let found = self.table_of(table).lookup_into(&conn.key(), &mut bytes, MapFlags::ANY);
            if found.map_err(failed("cannot look a connection up"))? {
                return Ok(Some((table, ConnEntry::from_bytes(&bytes))));
            }
        }
        Ok(None)
    }

    /// Forgets a connection that stands in that table as `seen`. False when it does not (any more): its client has sent something
    /// since, or has begun another one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(
        &self,
        table: ConnTable,
        conn: &SwitchConn,
        seen: &ConnEntry,
    ) -> Result<bool, DatapathError> {
        let what = "cannot forget a connection";
        let (map, key) = (self.table_of(table), conn.key());
        let mut bytes = [0; layout::CONN_BYTES];
        let found = map.lookup_into(&key, &mut bytes, MapFlags::ANY).map_err(failed(what))?;
        if !found || ConnEntry::from_bytes(&bytes) != *seen {
            return Ok(false);
        }
        let taken = map.lookup_into_and_delete(&key, &mut bytes).map_err(failed(what))?;
        if !taken || ConnEntry::from_bytes(&bytes) == *seen {
            return Ok(taken);
        }
        // A packet has come between the two calls. If yet another one has entered the connection anew, that stands.
        match map.update(&key, &bytes, MapFlags::NO_EXIST) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed(what)(error)),
            _ => Ok(false),
        }
    }

    /// Most connections that a table holds.
    #[must_use]
    pub fn capacity(&self, table: ConnTable) -> u32 {
        self.table_of(table).max_entries()
    }
}
