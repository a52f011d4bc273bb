//! Reading. A batch borrows what it was read from, so that it cannot be used after the next one has been read.

use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{mem, ptr, slice, str};

use trail_sys as sys;

use crate::Error;

/// A trace that can be read. Each of its functions reads it anew.
#[derive(Clone, Debug)]
pub struct Trace {
    path: PathBuf,
    version: i32,
}

/// Nanoseconds from the first event on; None: from the beginning, to the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    pub from_ns: Option<i64>,
    pub to_ns: Option<i64>,
}

/// A problem that a trace shows. Times are those of the trace's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: String,
    pub text: String,
    pub gain_ns: i64,
    pub is_note: bool,
    pub function: Option<String>,
    pub object: Option<String>,
    pub goroutine: Option<i64>,
    pub task: Option<i64>,
    pub begin_ns: Option<i64>,
    pub end_ns: Option<i64>,
    /// What a replay of the trace without the problem has shown. None: not replayed.
    pub replayed: Option<Replayed>,
}

/// A figure of a replay, in the trace and without the problem; the same: nothing is gained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    pub text: String,
    /// "end": the time up to the end; "median" and "p99": of the length of tasks; "waits": the time in which threads wait for
    /// each other.
    pub of: String,
    pub now_ns: i64,
    pub then_ns: i64,
}

impl Trace {
    pub fn open(path: impl AsRef<Path>) -> Result<Trace, Error> {
        let path = path.as_ref().to_owned();
        // SAFETY: the reader is open.
        let version = unsafe { sys::trail_reader_version(Handle::open(&path)?.reader) };
        Ok(Trace { path, version })
    }

    /// 26 for the format of Go 1.26.
    pub fn version(&self) -> i32 {
        self.version
    }

    pub fn events(&self) -> Result<Reader, Error> {
        Handle::open(&self.path).map(Reader)
    }

    /// The rows of a table of `trail sql`; all columns are computed that are asked for, or all if `columns` is empty.
    pub fn rows(&self, table: &str, columns: &[&str], window: Window) -> Result<Rows, Error> {
        Rows::open(Handle::open(&self.path)?, table, columns, window)
    }

    /// What is wrong in the trace, as `trail summary` lists it: what would gain most comes first.
    pub fn findings(&self) -> Result<Vec<Finding>, Error> {
        let mut rows = self.rows("findings", &[], Window::default())?;
        let mut findings = Vec::new();
        while let Some(batch) = rows.next()? {
            for row in batch.rows() {
                let text = |name| row.get(name).text().map(str::to_owned);
                findings.push(Finding {
                    kind: text("kind").unwrap_or_default(),
                    text: text("text").unwrap_or_default(),
                    gain_ns: row.get("gain_ns").int().unwrap_or(0),
                    is_note: row.get("is_note") == Value::Bool(true),
                    function: text("function"),
                    object: text("object"),
                    goroutine: row.get("goroutine").int(),
                    task: row.get("task").int(),
                    begin_ns: row.get("begin_ns").int(),
                    end_ns: row.get("end_ns").int(),
                    replayed: text("replayed").map(|sentence| Replayed {
                        text: sentence,
                        of: text("replayed_of").unwrap_or_default(),
                        now_ns: row.get("replayed_now_ns").int().unwrap_or(0),
                        then_ns: row.get("replayed_then_ns").int().unwrap_or(0),
                    }),
                });
            }
        }
        Ok(findings)
    }
}

/// A reader and its source, which it owns.
struct Handle {
    reader: *mut sys::trail_reader,
    source: *mut sys::trail_source,
}

// SAFETY: the library has no global state and no thread-local one; an object may be used by one thread at a time, which the
// raw pointers ensure, because they are not Sync.
unsafe impl Send for Handle {}

impl Handle {
    fn open(path: &Path) -> Result<Handle, Error> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| usage("a path with a NUL".to_owned()))?;
        let mut handle = Handle { reader: ptr::null_mut(), source: ptr::null_mut() };
        // SAFETY: the source outlives the reader: see drop.
        let ((), error) = Error::catch(|error| unsafe {
            handle.source = sys::trail_source_open_path(name.as_ptr(), error);
            if !handle.source.is_null() {
                handle.reader = sys::trail_reader_open(handle.source, ptr::null(), error);
            }
        });
        if handle.reader.is_null() {
            return Err(Error::from(&error));
        }
        Ok(handle)
    }

    fn string(&self, handle: sys::trail_string_handle) -> &[u8] {
        // SAFETY: the reader is open. The text lives until the next batch is read, for which it must be borrowed mutably.
        unsafe { bytes(sys::trail_reader_string(self.reader, handle)) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: both are open, or NULL, which the library accepts.
        unsafe {
            sys::trail_reader_close(self.reader);
            sys::trail_source_close(self.source);
        }
    }
}

fn usage(message: String) -> Error {
    Error { message, code: sys::TRAIL_USAGE, offset: None }
}

/// SAFETY: the text must live as long as the result.
unsafe fn bytes<'a>(text: sys::trail_string) -> &'a [u8] {
    if text.size == 0 {
        return &[];
    }
    slice::from_raw_parts(text.data.cast(), text.size)
}

/// SAFETY: a constant text of the library, which is ASCII.
unsafe fn constant(text: *const c_char) -> &'static str {
    CStr::from_ptr(text).to_str().unwrap_or("?")
}

// MARK: Events

/// The events of a trace, in order.
pub struct Reader(Handle);

impl Reader {
    /// The next events; None at the end. All that is good comes before an error.
    #[allow(clippy::should_implement_trait)] // an Iterator's items cannot borrow from it
    pub fn next(&mut self) -> Result<Option<Events<'_>>, Error> {
        let mut first = ptr::null();
        // SAFETY: the reader is open. The events live until the next call, before which the batch has to end.
        unsafe {
            match sys::trail_reader_next_batch(self.0.reader, &mut first) {
                0 => Ok(None),
                count if count > 0 => Ok(Some(Events { handle: &self.0, events: slice::from_raw_parts(first, count as usize) })),
                _ => Err(Error::from(&*sys::trail_reader_error(self.0.reader))),
            }
        }
    }
}

/// A batch of events.
#[derive(Clone, Copy)]
pub struct Events<'a> {
    handle: &'a Handle,
    events: &'a [sys::trail_event],
}

impl<'a> Events<'a> {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Event<'a>> {
        let handle = self.handle;
        self.events.iter().map(move |raw| Event { handle, raw })
    }
}

/// An event: where it happened, and what it is about. Texts may have any bytes.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    handle: &'a Handle,
    raw: &'a sys::trail_event,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum About<'a> {
    Metric { name: &'static str, value: u64 },
    Label { goroutine: i64, text: &'a [u8] },
    Range { name: &'a [u8] },
    Task { id: u64, parent: Option<u64>, name: &'a [u8] },
    Region { task: u64, name: &'a [u8] },
    Log { task: u64, category: &'a [u8], message: &'a [u8] },
    GoroutineState { id: i64, from: &'static str, to: &'static str, reason: &'a [u8] },
    ProcState { id: i64, from: &'static str, to: &'static str },
    Nothing,
}

/// A frame of a stack, leaf first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub pc: u64,
    pub function: &'a [u8],
    pub file: &'a [u8],
    pub line: u64,
}

fn id(number: i64) -> Option<i64> {
    (number != sys::TRAIL_NONE).then_some(number)
}

impl<'a> Event<'a> {
    pub fn time_ns(&self) -> i64 {
        self.raw.time_ns
    }

    /// The goroutine in which it happened, before it took effect; the P and the thread are alike.
    pub fn goroutine(&self) -> Option<i64> {
        id(self.raw.goroutine)
    }

    pub fn proc(&self) -> Option<i64> {
        id(self.raw.proc)
    }

    pub fn thread(&self) -> Option<i64> {
        id(self.raw.thread)
    }

    /// "StateTransition", "Log", "RegionBegin", ...
    pub fn kind(&self) -> &'static str {
        // SAFETY: the function accepts any number.
        unsafe { constant(sys::trail_kind_name(self.raw.kind.into())) }
    }

    pub fn about(&self) -> About<'a> {
        let (of, handle) = (&self.raw.of, self.handle);
        let text = |text| handle.string(text);
        // SAFETY: the kind selects the member of the union, and the resource the kind of state.
        unsafe {
            match self.raw.kind {
                sys::TRAIL_METRIC => {
                    About::Metric { name: constant(sys::trail_metric_name(of.metric.metric)), value: of.metric.value }
                }
                sys::TRAIL_LABEL => About::Label { goroutine: of.label.goroutine, text: text(of.label.text) },
                sys::TRAIL_RANGE_BEGIN..=sys::TRAIL_RANGE_END => About::Range { name: text(of.range.name) },
                sys::TRAIL_TASK_BEGIN | sys::TRAIL_TASK_END => {
                    let parent = (of.task.parent != sys::TRAIL_NO_TASK).then_some(of.task.parent);
                    About::Task { id: of.task.id, parent, name: text(of.task.r#type) }
                }
                sys::TRAIL_REGION_BEGIN | sys::TRAIL_REGION_END => {
                    About::Region { task: of.region.task, name: text(of.region.r#type) }
                }
                sys::TRAIL_LOG => About::Log { task: of.log.task, category: text(of.log.category), message: text(of.log.message) },
                sys::TRAIL_STATE_TRANSITION => self.transition(of.transition),
                _ => About::Nothing,
            }
        }
    }

    fn transition(&self, to: sys::trail_event_transition) -> About<'a> {
        // SAFETY: the functions accept any number.
        let (goroutine, proc) = unsafe {
            (
                |state: u8| constant(sys::trail_go_state_name(state.into())),
                |state: u8| constant(sys::trail_proc_state_name(state.into())),
            )
        };
        match to.resource {
            sys::TRAIL_RESOURCE_GOROUTINE => About::GoroutineState {
                id: to.id,
                from: goroutine(to.from),
                to: goroutine(to.to),
                reason: self.handle.string(to.reason),
            },
            sys::TRAIL_RESOURCE_PROC => About::ProcState { id: to.id, from: proc(to.from), to: proc(to.to) },
            _ => About::Nothing,
        }
    }

    /// Where the goroutine of the event was.
    pub fn stack(&self) -> impl ExactSizeIterator<Item = Frame<'a>> {
        self.frames(self.raw.stack)
    }

    /// Where the goroutine was whose state changes.
    pub fn resource_stack(&self) -> impl ExactSizeIterator<Item = Frame<'a>> {
        // SAFETY: the kind selects the member of the union.
        let transition = self.raw.kind == sys::TRAIL_STATE_TRANSITION;
        self.frames(if transition { unsafe { self.raw.of.transition.stack } } else { 0 })
    }

    fn frames(&self, stack: sys::trail_stack_handle) -> impl ExactSizeIterator<Item = Frame<'a>> {
        let (handle, mut count) = (self.handle, 0);
        // SAFETY: the reader is open; the frames live as long as the event.
        let frames: &'a [sys::trail_frame] = unsafe {
            let first = sys::trail_reader_stack(handle.reader, stack, &mut count);
            if count == 0 {
                &[]
            } else {
                slice::from_raw_parts(first, count)
            }
        };
        frames.iter().map(move |frame| Frame {
            pc: frame.pc,
            function: handle.string(frame.function),
            file: handle.string(frame.file),
            line: frame.line,
        })
    }
}

// MARK: Tables

/// The rows of a table.
pub struct Rows {
    tables: *mut sys::trail_tables,
    table: &'static sys::trail_table,
    _reader: Handle, // closed after the tables
}

// SAFETY: as for Handle.
unsafe impl Send for Rows {}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: they are open, and the reader still is.
        unsafe { sys::trail_tables_close(self.tables) }
    }
}

/// The columns of a table: those of `trail sql`, without the ones that are the same in every row: trace, file, host and day.
fn own(table: &'static sys::trail_table) -> &'static [sys::trail_table_column] {
    // SAFETY: a constant of the library.
    unsafe { slice::from_raw_parts(table.columns, table.column_count - sys::TRAIL_TABLE_COMMON) }
}

fn name_of(column: &sys::trail_table_column) -> &'static str {
    // SAFETY: a constant of the library.
    unsafe { constant(column.name) }
}

fn index_of(table: &'static sys::trail_table, name: &str) -> Option<usize> {
    own(table).iter().position(|column| name_of(column) == name)
}

impl Rows {
    fn open(reader: Handle, table: &str, columns: &[&str], window: Window) -> Result<Rows, Error> {
        let unknown = |name: &str| usage(format!("no table or column {name}"));
        let text = CString::new(table).map_err(|_| unknown(table))?;
        let mut number: sys::trail_table_id = 0;
        // SAFETY: the options are integers and pointers, for which zero is valid; definitions are constants of the library.
        let (mut options, definition): (sys::trail_tables_options, &'static sys::trail_table) = unsafe {
            if !sys::trail_table_find(text.as_ptr(), &mut number) {
                return Err(unknown(table));
            }
            (mem::zeroed(), &*sys::trail_table_get(number))
        };
        let wanted = &mut options.wanted[number as usize];
        for name in columns {
            *wanted |= 1 << index_of(definition, name).ok_or_else(|| unknown(name))?;
        }
        if columns.is_empty() {
            *wanted = (1 << own(definition).len()) - 1;
        }
        (options.has_from, options.from_ns) = (window.from_ns.is_some(), window.from_ns.unwrap_or(0));
        (options.has_to, options.to_ns) = (window.to_ns.is_some(), window.to_ns.unwrap_or(0));
        // SAFETY: the reader outlives the tables: see drop.
        let (tables, error) = Error::catch(|error| unsafe { sys::trail_tables_open(reader.reader, &options, error) });
        if tables.is_null() {
            return Err(Error::from(&error));
        }
        Ok(Rows { tables, table: definition, _reader: reader })
    }

    /// The next rows; None at the end. All that is good comes before an error.
    #[allow(clippy::should_implement_trait)] // an Iterator's items cannot borrow from it
    pub fn next(&mut self) -> Result<Option<Batch<'_>>, Error> {
        let mut rows = sys::trail_rows { table: 0, count: 0, columns: ptr::null() };
        // SAFETY: the tables are open.
        let (more, error) = Error::catch(|error| unsafe { sys::trail_tables_next(self.tables, &mut rows, error) });
        match more {
            0 => Ok(None),
            more if more > 0 => Ok(Some(Batch { rows, table: self.table, of: PhantomData })),
            _ => Err(Error::from(&error)),
        }
    }
}

/// Rows of a table.
pub struct Batch<'a> {
    rows: sys::trail_rows,
    table: &'static sys::trail_table,
    of: PhantomData<&'a Rows>,
}

/// A column of a batch, with a value for each row.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    values: Values<'a>,
    valid: Option<&'a [u64]>,
}

#[derive(Clone, Copy)]
enum Values<'a> {
    I64(&'a [i64]),
    I32(&'a [i32]),
    Bool(&'a [u8]),
    Enum(&'a [u8], *const *const c_char),
    Text(&'a [sys::trail_string]),
}

/// A value of a table. Words of enumerations are texts, and a date is the number of its days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Bool(bool),
    Text(&'a str),
}

impl<'a> Value<'a> {
    pub fn int(self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }

    pub fn text(self) -> Option<&'a str> {
        match self {
            Value::Text(value) => Some(value),
            _ => None,
        }
    }
}

impl<'a> Batch<'a> {
    pub fn len(&self) -> usize {
        self.rows.count
    }

    pub fn is_empty(&self) -> bool {
        self.rows.count == 0
    }

    /// A column, if the table has it and it was asked for.
    pub fn column(&self, name: &str) -> Option<Column<'a>> {
        let i = index_of(self.table, name)?;
        let (definition, count) = (&own(self.table)[i], self.rows.count);
        // SAFETY: the library has one value for each column, and `count` values of its type behind it; both live until the
        // next call, before which the batch has to end.
        unsafe {
            let raw = &*self.rows.columns.add(i);
            if raw.any.is_null() {
                return None;
            }
            let values = match definition.cell {
                sys::TRAIL_CELL_I64 => Values::I64(slice::from_raw_parts(raw.any.cast(), count)),
                sys::TRAIL_CELL_I32 | sys::TRAIL_CELL_DATE => Values::I32(slice::from_raw_parts(raw.any.cast(), count)),
                sys::TRAIL_CELL_BOOL => Values::Bool(slice::from_raw_parts(raw.any.cast(), count)),
                sys::TRAIL_CELL_ENUM => Values::Enum(slice::from_raw_parts(raw.any.cast(), count), definition.words),
                _ => Values::Text(slice::from_raw_parts(raw.any.cast(), count)),
            };
            let valid = (!raw.valid.is_null()).then(|| slice::from_raw_parts(raw.valid, (count + 63) / 64));
            Some(Column { values, valid })
        }
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'_, 'a>> {
        (0..self.rows.count).map(move |at| Row { batch: self, at })
    }
}

/// A row of a batch.
#[derive(Clone, Copy)]
pub struct Row<'b, 'a> {
    batch: &'b Batch<'a>,
    at: usize,
}

impl<'a> Row<'_, 'a> {
    /// The value of a column; Null if it was not asked for.
    pub fn get(&self, name: &str) -> Value<'a> {
        self.batch.column(name).map_or(Value::Null, |column| column.get(self.at))
    }
}

impl<'a> Column<'a> {
    /// All values of a column of 64-bit integers, with 0 for NULL.
    pub fn as_i64(&self) -> Option<&'a [i64]> {
        match self.values {
            Values::I64(values) => Some(values),
            _ => None,
        }
    }

    pub fn is_null(&self, row: usize) -> bool {
        self.valid.map_or(false, |bits| bits[row / 64] >> (row % 64) & 1 == 0)
    }

    /// Panics if the batch has no such row.
    pub fn get(&self, row: usize) -> Value<'a> {
        if self.is_null(row) {
            return Value::Null;
        }
        match self.values {
            Values::I64(values) => Value::Int(values[row]),
            Values::I32(values) => Value::Int(values[row].into()),
            Values::Bool(values) => Value::Bool(values[row] != 0),
            // SAFETY: the library's words are constants, and its numbers lie within them.
            Values::Enum(values, words) => Value::Text(unsafe { constant(*words.add(values[row].into())) }),
            // SAFETY: texts live as long as the batch, and are UTF-8.
            Values::Text(values) => Value::Text(unsafe { str::from_utf8_unchecked(bytes(values[row])) }),
        }
    }
}

/// The names of the tables.
pub fn tables() -> Vec<&'static str> {
    // SAFETY: definitions are constants of the library.
    (0..sys::TRAIL_TABLES as c_uint).map(|table| unsafe { constant((*sys::trail_table_get(table)).name) }).collect()
}

/// The columns of a table; empty if there is no such table.
pub fn columns(table: &str) -> Vec<&'static str> {
    let number = tables().iter().position(|name| *name == table);
    // SAFETY: definitions are constants of the library.
    number.map_or(Vec::new(), |number| own(unsafe { &*sys::trail_table_get(number as c_uint) }).iter().map(name_of).collect())
}
