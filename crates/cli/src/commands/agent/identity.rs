//! As which user an agent goes on.

use plimsoll_agent::daemon::ServeConfig;
use plimsoll_datapath::privileges::{FileNeed, Identity, choose};

use super::options::Args;
use crate::error::CliError;

pub(super) fn identity(args: &Args, serve: &ServeConfig, needs: &[FileNeed]) -> Result<Identity, CliError> {
    let is_shim = matches!(serve, ServeConfig::Shim(_));
    if !is_shim || args.user.is_some() {
        return Ok(choose(args.user.as_deref(), needs)?);
    }
    // Of those who are not root, the shim takes connections only from the user that started the server.
    let mut identity = choose(None, needs)?;
    if !matches!(identity, Identity::Starter) {
        identity = choose(Some("root"), needs)?;
        if let Identity::Root { why, .. } = &mut identity {
            *why = Some(
                "the accept shim takes connections from root or from the user that started the server"
                    .to_owned(),
            );
        }
    }
    Ok(identity)
}
