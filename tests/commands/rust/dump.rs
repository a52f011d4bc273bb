//! Prints a trace as JSON lines for rust_binding.py: `dump reader TRACE`, `dump TABLE TRACE [FROM_NS TO_NS COLUMN...]`,
//! `dump list TRACE`.

use trail::{About, Column, Error, Frame, Trace, Value, Window};

fn json(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c < ' ' => text += &format!("\\u{:04x}", c as u32),
            c => text.push(c),
        }
    }
    text + "\""
}

fn events(trace: &Trace) -> Result<(), Error> {
    let mut reader = trace.events()?;
    while let Some(batch) = reader.next()? {
        for event in batch.iter() {
            let number = |id: Option<i64>| id.map_or("null".to_owned(), |id| id.to_string());
            let about = match event.about() {
                About::Metric { name, value } => vec![json(name.as_bytes()), value.to_string()],
                About::Label { goroutine, text } => vec![goroutine.to_string(), json(text)],
                About::Range { name } => vec![json(name)],
                About::Task { id, parent, name } => {
                    vec![id.to_string(), parent.map_or("null".to_owned(), |id| id.to_string()), json(name)]
                }
                About::Region { task, name } => vec![task.to_string(), json(name)],
                About::Log { task, category, message } => vec![task.to_string(), json(category), json(message)],
                About::GoroutineState { id, from, to, reason } => {
                    vec![id.to_string(), json(from.as_bytes()), json(to.as_bytes()), json(reason)]
                }
                About::ProcState { id, from, to } => vec![id.to_string(), json(from.as_bytes()), json(to.as_bytes())],
                _ => vec![],
            };
            let stack = |frame: Frame| format!("[{},{},{},{}]", frame.pc, json(frame.function), json(frame.file), frame.line);
            let stacks = [event.stack().map(stack).collect::<Vec<_>>(), event.resource_stack().map(stack).collect()];
            println!(
                "[{},{},{},{},{},[{}],[{}],[{}]]",
                event.time_ns(),
                json(event.kind().as_bytes()),
                number(event.goroutine()),
                number(event.proc()),
                number(event.thread()),
                about.join(","),
                stacks[0].join(","),
                stacks[1].join(",")
            );
        }
    }
    Ok(())
}

fn rows(trace: &Trace, table: &str, window: Window, columns: &[&str]) -> Result<(), Error> {
    let all = trail::columns(table);
    let names = if columns.is_empty() { &all } else { columns };
    let mut rows = trace.rows(table, columns, window)?;
    while let Some(batch) = rows.next()? {
        let columns: Vec<Column> = names.iter().map(|name| batch.column(name).unwrap()).collect();
        for (i, row) in batch.rows().enumerate() {
            let cells: Vec<_> = names
                .iter()
                .zip(&columns)
                .map(|(name, column)| {
                    assert_eq!(row.get(name), column.get(i));
                    if let (Some(values), Value::Int(value)) = (column.as_i64(), column.get(i)) {
                        assert_eq!(values[i], value);
                    }
                    match column.get(i) {
                        Value::Null => json(b""),
                        Value::Int(value) => json(value.to_string().as_bytes()),
                        Value::Bool(value) => json(value.to_string().as_bytes()),
                        Value::Text(value) => json(value.as_bytes()),
                    }
                })
                .collect();
            println!("[{}]", cells.join(","));
        }
    }
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize| args.get(i).and_then(|text| text.parse().ok());
    let done = Trace::open(&args[2]).and_then(|trace| match args[1].as_str() {
        "version" => Ok(println!("{} {}", trail::VERSION, trace.version())),
        "tables" => Ok(trail::tables().iter().for_each(|table| println!("{table} {}", trail::columns(table).join(",")))),
        "reader" => events(&trace),
        "list" => Ok(trace.findings()?.iter().for_each(|finding| println!("{finding:?}"))),
        table => {
            let columns: Vec<&str> = args.iter().skip(5).map(String::as_str).collect();
            rows(&trace, table, Window { from_ns: number(3), to_ns: number(4) }, &columns)
        }
    });
    if let Err(error) = done {
        println!("{} {:?} {error}", error.code, error.offset);
        std::process::exit(1);
    }
}
