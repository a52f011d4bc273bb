//! The functions of libtrail (feature `read`) and libtrail-record (feature `record`) that the crate `trail` uses, as
//! include/trail/*.h declares them. Names and meanings are those of the headers. A test compares sizes, offsets, constants and
//! signatures with C.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_uint, c_void};

// error.h

pub const TRAIL_MESSAGE_MAX: usize = 512;

pub type trail_code = c_uint;
pub const TRAIL_USAGE: trail_code = 9;

#[repr(C)]
pub struct trail_error {
    pub code: trail_code,
    pub message: [c_char; TRAIL_MESSAGE_MAX],
    pub offset: i64,
    pub generation: i64,
    pub batch: i64,
    pub thread: i64,
    pub proc: i64,
    pub goroutine: i64,
    pub time_ns: i64,
}

// read.h

pub enum trail_source {}
pub enum trail_reader {}

pub type trail_string_handle = u32;
pub type trail_stack_handle = u32;
pub type trail_metric = c_uint;
pub type trail_range = c_uint;
pub type trail_resource = c_uint;

pub const TRAIL_SYNC: u8 = 1;
pub const TRAIL_METRIC: u8 = 2;
pub const TRAIL_LABEL: u8 = 3;
pub const TRAIL_STACK_SAMPLE: u8 = 4;
pub const TRAIL_RANGE_BEGIN: u8 = 5;
pub const TRAIL_RANGE_ACTIVE: u8 = 6;
pub const TRAIL_RANGE_END: u8 = 7;
pub const TRAIL_TASK_BEGIN: u8 = 8;
pub const TRAIL_TASK_END: u8 = 9;
pub const TRAIL_REGION_BEGIN: u8 = 10;
pub const TRAIL_REGION_END: u8 = 11;
pub const TRAIL_LOG: u8 = 12;
pub const TRAIL_STATE_TRANSITION: u8 = 13;

pub const TRAIL_RESOURCE_GOROUTINE: u8 = 1;
pub const TRAIL_RESOURCE_PROC: u8 = 2;

pub const TRAIL_NONE: i64 = -1;
pub const TRAIL_NO_TASK: u64 = u64::MAX;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct trail_string {
    pub data: *const c_char,
    pub size: usize,
}

#[repr(C)]
pub struct trail_frame {
    pub pc: u64,
    pub function: trail_string_handle,
    pub file: trail_string_handle,
    pub line: u64,
}

#[repr(C)]
pub struct trail_event {
    pub time_ns: i64,
    pub thread: i64,
    pub proc: i64,
    pub goroutine: i64,
    pub kind: u8,
    pub wire: u8,
    pub flags: u8,
    pub reserved: u8,
    pub stack: trail_stack_handle,
    pub of: trail_event_of,
}

/// The union of trail_event.
#[repr(C)]
pub union trail_event_of {
    pub metric: trail_event_metric,
    pub label: trail_event_label,
    pub range: trail_event_range,
    pub task: trail_event_task,
    pub region: trail_event_region,
    pub log: trail_event_log,
    pub transition: trail_event_transition,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct trail_event_metric {
    pub metric: trail_metric,
    pub value: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct trail_event_label {
    pub goroutine: i64,
    pub text: trail_string_handle,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct trail_event_range {
    pub range: trail_range,
    pub scope: trail_resource,
    pub scope_id: i64,
    pub name: trail_string_handle,
    pub has_swept: bool,
    pub swept_bytes: u64,
    pub reclaimed_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct trail_event_task {
    pub id: u64,
    pub parent: u64,
    pub r#type: trail_string_handle,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct trail_event_region {
    pub task: u64,
    pub r#type: trail_string_handle,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct trail_event_log {
    pub task: u64,
    pub category: trail_string_handle,
    pub message: trail_string_handle,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct trail_event_transition {
    pub resource: u8,
    pub from: u8,
    pub to: u8,
    pub status: u8,
    pub reason: trail_string_handle,
    pub stack: trail_stack_handle,
    pub id: i64,
}

pub type trail_kind = c_uint;
pub type trail_go_state = c_uint;
pub type trail_proc_state = c_uint;

/// Only NULL is passed for it.
pub enum trail_reader_options {}

// tables.h

pub const TRAIL_TABLES: usize = 12;
pub const TRAIL_TABLE_COMMON: usize = 4;

pub type trail_cell = c_uint;
pub const TRAIL_CELL_I64: trail_cell = 0;
pub const TRAIL_CELL_I32: trail_cell = 1;
pub const TRAIL_CELL_BOOL: trail_cell = 2;
pub const TRAIL_CELL_ENUM: trail_cell = 3;
pub const TRAIL_CELL_TEXT: trail_cell = 4;
pub const TRAIL_CELL_DATE: trail_cell = 5;

pub type trail_table_id = c_uint;

#[repr(C)]
pub struct trail_table_column {
    pub name: *const c_char,
    pub cell: trail_cell,
    pub nullable: bool,
    pub words: *const *const c_char,
    pub meaning: *const c_char,
}

#[repr(C)]
pub struct trail_table {
    pub name: *const c_char,
    pub meaning: *const c_char,
    pub columns: *const trail_table_column,
    pub column_count: usize,
    pub key: *const c_char,
}

#[repr(C)]
pub struct trail_tables_options {
    pub wanted: [u32; TRAIL_TABLES],
    pub trace: *const c_char,
    pub file: *const c_char,
    pub host: *const c_char,
    pub day: i32,
    pub has_from: bool,
    pub has_to: bool,
    pub from_ns: i64,
    pub to_ns: i64,
    pub progress: Option<unsafe extern "C" fn(context: *mut c_void)>,
    pub progress_context: *mut c_void,
    pub csv_safe: bool,
    pub reserved: [u64; 4],
}

#[repr(C)]
pub struct trail_values {
    pub any: *const c_void,
    pub valid: *const u64,
    pub passes: bool,
}

#[repr(C)]
pub struct trail_rows {
    pub table: trail_table_id,
    pub count: usize,
    pub columns: *const trail_values,
}

pub enum trail_tables {}

#[cfg(feature = "read")]
extern "C" {
    pub fn trail_code_name(code: trail_code) -> *const c_char;
    pub fn trail_source_open_path(path: *const c_char, err: *mut trail_error) -> *mut trail_source;
    pub fn trail_source_close(source: *mut trail_source);
    pub fn trail_reader_open(
        source: *mut trail_source,
        options: *const trail_reader_options,
        err: *mut trail_error,
    ) -> *mut trail_reader;
    pub fn trail_reader_close(reader: *mut trail_reader);
    pub fn trail_reader_version(reader: *const trail_reader) -> c_int;
    pub fn trail_reader_next_batch(reader: *mut trail_reader, events: *mut *const trail_event) -> std::os::raw::c_long;
    pub fn trail_reader_error(reader: *const trail_reader) -> *const trail_error;
    pub fn trail_reader_string(reader: *const trail_reader, handle: trail_string_handle) -> trail_string;
    pub fn trail_reader_stack(reader: *const trail_reader, handle: trail_stack_handle, count: *mut usize) -> *const trail_frame;
    pub fn trail_kind_name(kind: trail_kind) -> *const c_char;
    pub fn trail_go_state_name(state: trail_go_state) -> *const c_char;
    pub fn trail_proc_state_name(state: trail_proc_state) -> *const c_char;
    pub fn trail_metric_name(metric: trail_metric) -> *const c_char;
    pub fn trail_table_get(table: trail_table_id) -> *const trail_table;
    pub fn trail_table_find(name: *const c_char, table: *mut trail_table_id) -> bool;
    pub fn trail_tables_open(
        reader: *mut trail_reader,
        options: *const trail_tables_options,
        err: *mut trail_error,
    ) -> *mut trail_tables;
    pub fn trail_tables_next(tables: *mut trail_tables, rows: *mut trail_rows, err: *mut trail_error) -> c_int;
    pub fn trail_tables_close(tables: *mut trail_tables);
}

// record.h

pub const TRAIL_SCOPE_OFF_: u64 = u64::MAX;

#[repr(C)]
pub struct trail_scope_ {
    pub name: *const c_char,
    pub task: u64,
    pub goroutine: u64,
    pub session: u64,
}

#[repr(C)]
pub struct trail_category {
    pub name: *const c_char,
    pub seen_: u32,
}

pub enum trail_options {}

#[cfg(feature = "record")]
extern "C" {
    /// Read with a relaxed load. Bit 1: something is recorded.
    pub static trail_tracing_: std::sync::atomic::AtomicU32;
    pub static trail_categories_: std::sync::atomic::AtomicU32;
    pub fn trail_start_fd(options: *const trail_options, fd: c_int, err: *mut trail_error) -> bool;
    pub fn trail_stop(err: *mut trail_error) -> bool;
    pub fn trail_task_begin_(parent: u64, name: *const c_char) -> u64;
    pub fn trail_task_end_(task: u64);
    pub fn trail_scope_begin_(scope: *mut trail_scope_);
    pub fn trail_scope_end_(scope: *const trail_scope_);
    pub fn trail_log_(task: u64, category: *const c_char, message: *const c_char);
    pub fn trail_category_look_up_(category: *mut trail_category) -> bool;
    pub fn trail_categories_set(list: *const c_char, err: *mut trail_error) -> bool;
}
