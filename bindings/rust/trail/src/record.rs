//! Annotations: docs/annotating-a-program.md.

use std::arch::asm;
use std::cell::UnsafeCell;
use std::ffi::CString;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::os::raw::c_char;
use std::os::unix::io::AsRawFd;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use trail_sys as sys;

use crate::Error;

/// Whether something is recorded: `trail record`, or a trace of the program's own. Costs one load.
#[inline(always)]
pub fn enabled() -> bool {
    // SAFETY: an atomic of the library, never written by others.
    unsafe { sys::trail_tracing_.load(Ordering::Relaxed) & 1 != 0 }
}

/// After a call of the library: prevents a tail call, so that the caller stays a frame of the stack.
#[inline(always)]
fn stay() {
    // SAFETY: no instruction.
    unsafe { asm!("", options(nomem, nostack, preserves_flags)) }
}

/// A text that ends with NUL: `name!("parse")`. What follows an earlier NUL is left out.
#[derive(Clone, Copy)]
pub struct Name(&'static str);

impl Name {
    /// For the macro; panics if there is no NUL at the end.
    pub const fn ending_with_nul(text: &'static str) -> Name {
        let bytes = text.as_bytes();
        assert!(!bytes.is_empty() && bytes[bytes.len() - 1] == 0);
        Name(text)
    }

    fn as_ptr(self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

/// A literal as a [`Name`].
#[macro_export]
macro_rules! name {
    ($text:literal) => {
        $crate::Name::ending_with_nul(::core::concat!($text, "\0"))
    };
}

/// Work in which several threads may take part: a request, a job. It ends when it is dropped, in any thread.
#[derive(Debug)]
pub struct Task(u64);

impl Task {
    /// A task that is part of another one, or of none: 0.
    #[inline(always)]
    pub fn new(parent: u64, name: Name) -> Task {
        // SAFETY: the name ends with NUL, and is copied.
        Task(if enabled() { unsafe { sys::trail_task_begin_(parent, name.as_ptr()) } } else { 0 })
    }

    /// Its number; 0 if nothing was recorded when it began.
    pub fn id(&self) -> u64 {
        self.0
    }
}

impl Drop for Task {
    #[inline(always)]
    fn drop(&mut self) {
        if enabled() {
            // SAFETY: any number is allowed.
            unsafe { sys::trail_task_end_(self.0) }
            stay();
        }
    }
}

/// Work of one thread, which ends when this is dropped: see [`region!`]. It stays in its thread.
#[must_use = "the region ends when it is dropped"]
pub struct Region {
    scope: sys::trail_scope_,
    thread: PhantomData<*const ()>, // neither Send nor Sync
}

impl Region {
    #[inline(always)]
    pub fn new(task: u64, name: Name) -> Region {
        let mut scope = sys::trail_scope_ { name: name.as_ptr(), task, goroutine: 0, session: 0 };
        if enabled() {
            // SAFETY: the name is valid for the rest of the program.
            unsafe { sys::trail_scope_begin_(&mut scope) }
        }
        Region { scope, thread: PhantomData }
    }

    /// A region if the category is on.
    #[inline(always)]
    pub fn new_in(category: &Category, task: u64, name: Name) -> Region {
        if category.enabled() {
            return Region::new(task, name);
        }
        let scope = sys::trail_scope_ { name: name.as_ptr(), task, goroutine: 0, session: sys::TRAIL_SCOPE_OFF_ };
        Region { scope, thread: PhantomData }
    }
}

impl Drop for Region {
    #[inline(always)]
    fn drop(&mut self) {
        if enabled() && self.scope.session != sys::TRAIL_SCOPE_OFF_ {
            // SAFETY: the scope is as the library set it.
            unsafe { sys::trail_scope_end_(&self.scope) }
            stay();
        }
    }
}

/// A region that lasts to the end of the block: `region!("parse")`, or of a task: `region!(task.id(), "parse")`.
#[macro_export]
macro_rules! region {
    ($name:literal) => {
        $crate::region!(0, $name)
    };
    ($task:expr, $name:literal) => {
        let _region = $crate::Region::new($task, $crate::name!($name));
    };
}

/// A task: `task!("request")`, or part of another one: `task!(request.id(), "query")`.
#[macro_export]
macro_rules! task {
    ($name:literal) => {
        $crate::task!(0, $name)
    };
    ($parent:expr, $name:literal) => {
        $crate::Task::new($parent, $crate::name!($name))
    };
}

/// Logs a message: `log!(task.id(), "cache", "{} hits", hits)`; 0: of no task. The arguments are evaluated only while
/// something is recorded.
#[macro_export]
macro_rules! log {
    ($task:expr, $category:literal, $($message:tt)+) => {
        if $crate::enabled() {
            $crate::log_message($task, $crate::name!($category), ::core::format_args!($($message)+));
        }
    };
}

/// For the macro [`log!`]. A message ends at its first NUL.
#[inline(always)]
pub fn log_message(task: u64, category: Name, message: fmt::Arguments<'_>) {
    let text = until_nul(fmt::format(message));
    // SAFETY: both texts end with NUL, and are copied.
    unsafe { sys::trail_log_(task, category.as_ptr(), text.as_ptr()) }
    stay();
}

fn until_nul(text: String) -> CString {
    let mut bytes = text.into_bytes();
    bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}

/// A category of annotations, which can be turned on and off while the program runs:
/// `static POOL: Category = Category::new(name!("db.pool"));`
pub struct Category(UnsafeCell<sys::trail_category>);

// SAFETY: its only field that changes, seen_, is loaded here and stored by the library, both atomically.
unsafe impl Sync for Category {}

impl Category {
    pub const fn new(name: Name) -> Category {
        Category(UnsafeCell::new(sys::trail_category { name: name.0.as_ptr().cast(), seen_: 0 }))
    }

    /// Whether something is recorded and the category is on.
    #[inline(always)]
    pub fn enabled(&self) -> bool {
        if !enabled() {
            return false;
        }
        let category = self.0.get();
        // SAFETY: the category is valid; seen_ is accessed as an atomic by all.
        unsafe {
            let seen = (*ptr::addr_of!((*category).seen_).cast::<AtomicU32>()).load(Ordering::Relaxed);
            if seen & !1 == sys::trail_categories_.load(Ordering::Relaxed) {
                seen & 1 != 0
            } else {
                sys::trail_category_look_up_(category)
            }
        }
    }
}

/// Sets the categories that are recorded: "net,db.*" these, "-net" all but that, "" all.
pub fn set_categories(list: &str) -> Result<(), Error> {
    let list = until_nul(list.to_owned());
    // SAFETY: the list ends with NUL, and is copied.
    result(Error::catch(|error| unsafe { sys::trail_categories_set(list.as_ptr(), error) }))
}

fn result((good, error): (bool, sys::trail_error)) -> Result<(), Error> {
    if good {
        Ok(())
    } else {
        Err(Error::from(&error))
    }
}

/// Records a trace of this program into a file, until [`stop`]. Under `trail record` it is not needed.
pub fn start(file: std::fs::File) -> Result<(), Error> {
    // SAFETY: the descriptor is open; the library duplicates it.
    result(Error::catch(|error| unsafe { sys::trail_start_fd(ptr::null(), file.as_raw_fd(), error) }))
}

/// Ends the trace: Err if a part of it was lost.
pub fn stop() -> Result<(), Error> {
    // SAFETY: may be called at any time.
    result(Error::catch(|error| unsafe { sys::trail_stop(error) }))
}

/// A future each of whose polls is a region of the thread that polls it.
pub struct InRegion<F> {
    task: u64,
    name: Name,
    future: F,
}

/// Shows where an async executor polls a future, as regions of a task (0: none):
/// `in_region(task.id(), name!("fetch"), fetch(url)).await`.
pub fn in_region<F: Future>(task: u64, name: Name, future: F) -> InRegion<F> {
    InRegion { task, name, future }
}

impl<F: Future> Future for InRegion<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _region = Region::new(self.task, self.name);
        // SAFETY: the inner future is pinned with the outer one: it is never moved out, and nothing else gives access to it.
        unsafe { self.map_unchecked_mut(|outer| &mut outer.future) }.poll(context)
    }
}
