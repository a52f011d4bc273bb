//! Execution traces of Go and C programs.
//!
//! Feature `read`: events, tables and findings of a trace, by libtrail.
//!
//! ```no_run
//! # #[cfg(feature = "read")]
//! # fn main() -> Result<(), trail::Error> {
//! let trace = trail::Trace::open("app.trace")?;
//! for finding in trace.findings()? {
//!     println!("{}", finding.text);
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "read"))]
//! # fn main() {}
//! ```
//!
//! Feature `record`: tasks, regions and logs of this program, by libtrail-record, for `trail record` and for traces that the
//! program records itself. While nothing is recorded, each costs a load and a branch. See [`region!`].

mod error;
#[cfg(feature = "read")]
mod read;
#[cfg(feature = "record")]
mod record;

pub use error::Error;
#[cfg(feature = "read")]
pub use read::*;
#[cfg(feature = "record")]
pub use record::*;

/// The version of trail that this crate belongs to.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
