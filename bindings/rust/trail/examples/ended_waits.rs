//! Which functions ended the longest waits? For each: how long others waited, how often, and for what most.
//!
//!     cargo run --example ended_waits app.trace

use std::collections::HashMap;
use std::error::Error;

use trail::{Trace, Window};

/// What a function ended.
#[derive(Default)]
struct Ended {
    ns: i64,
    waits: usize,
    by_object: HashMap<String, i64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: ended_waits TRACE")?;
    let trace = Trace::open(path)?;

    let mut functions = HashMap::new();
    let mut rows = trace.rows("stacks", &["stack", "function"], Window::default())?;
    while let Some(batch) = rows.next()? {
        for row in batch.rows() {
            functions.insert(row.get("stack").int(), row.get("function").text().unwrap_or("?").to_owned());
        }
    }

    let mut ended: HashMap<String, Ended> = HashMap::new();
    let wanted = ["state", "duration_ns", "reason", "wait_kind", "object", "waker_stack"];
    let mut rows = trace.rows("states", &wanted, Window::default())?;
    while let Some(batch) = rows.next()? {
        for row in batch.rows() {
            let waker = row.get("waker_stack").int();
            if row.get("state").text() != Some("Waiting") || waker.unwrap_or(0) == 0 {
                continue;
            }
            let ns = row.get("duration_ns").int().unwrap_or(0);
            let what = [row.get("wait_kind").text().or(row.get("reason").text()), row.get("object").text()];
            let place = ended.entry(functions.get(&waker).cloned().unwrap_or_default()).or_default();
            place.ns += ns;
            place.waits += 1;
            *place.by_object.entry(what.iter().flatten().copied().collect::<Vec<_>>().join(" ")).or_default() += ns;
        }
    }

    let mut places: Vec<_> = ended.into_iter().collect();
    places.sort_by_key(|(name, place)| (-place.ns, name.clone()));
    for (name, place) in places.iter().take(20) {
        let most = place.by_object.iter().max_by_key(|(object, ns)| (**ns, *object)).map_or("", |(object, _)| object);
        println!("{:12.3} ms in {} waits ended by {name}, most for {most}", place.ns as f64 / 1e6, place.waits);
    }
    Ok(())
}
