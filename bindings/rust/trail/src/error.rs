use std::ffi::CStr;
use std::{fmt, mem};

use trail_sys as sys;

/// What is wrong with a trace or a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub message: String,
    /// A constant of include/trail/error.h, as a number.
    pub code: u32,
    /// The byte in the trace, if it is known.
    pub offset: Option<u64>,
}

impl Error {
    /// Calls a function with an error for it to fill in.
    pub(crate) fn catch<T>(call: impl FnOnce(&mut sys::trail_error) -> T) -> (T, sys::trail_error) {
        // SAFETY: all fields are integers.
        let mut error = unsafe { mem::zeroed() };
        (call(&mut error), error)
    }
}

impl From<&sys::trail_error> for Error {
    fn from(error: &sys::trail_error) -> Error {
        // SAFETY: the library ends the message with NUL, within its array.
        let message = unsafe { CStr::from_ptr(error.message.as_ptr()) };
        Error { message: message.to_string_lossy().into_owned(), code: error.code, offset: error.offset.try_into().ok() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
