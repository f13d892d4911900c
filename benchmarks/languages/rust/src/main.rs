//! A client process of `bench languages`: rslock on one task, which is the only argument.
use redis::{Client, Script};
use rslock::LockManager;
use serde_json::{json, Value};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(10);
const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Milliseconds on the machine's monotonic clock.
fn now() -> f64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut at) };
    at.tv_sec as f64 * 1e3 + at.tv_nsec as f64 / 1e6
}

async fn sleep_until(at: f64) {
    let left = at - now();
    if left > 0.0 {
        tokio::time::sleep(Duration::from_secs_f64(left / 1e3)).await;
    }
}

#[derive(Clone)]
enum Library {
    Rslock(LockManager),
    Raw(redis::aio::MultiplexedConnection),
}

enum Held {
    Rslock(rslock::LockGuard),
    Raw(redis::aio::MultiplexedConnection, String, String),
}

impl Library {
    async fn take(&self, name: &str, ttl_ms: u64) -> Held {
        match self {
            Library::Rslock(manager) => {
                let ttl = Duration::from_millis(ttl_ms);
                Held::Rslock(manager.acquire(name, ttl).await.expect("a lock"))
            }
            Library::Raw(connection) => {
                let mut connection = connection.clone();
                let value = format!("{:x}", now().to_bits());
                loop {
                    let taken: Option<String> = redis::cmd("SET")
                        .arg(name).arg(&value).arg("NX").arg("PX").arg(ttl_ms)
                        .query_async(&mut connection).await.expect("an answer");
                    if taken.is_some() {
                        return Held::Raw(connection, name.to_string(), value);
                    }
                    tokio::time::sleep(POLL).await;
                }
            }
        }
    }
}

impl Held {
    async fn release(self) {
        match self {
            Held::Rslock(guard) => guard.release().await,
            Held::Raw(mut connection, name, value) => {
                let script = Script::new(COMPARE_AND_DELETE);
                let _: i64 = script.key(name).arg(value).invoke_async(&mut connection).await.expect("an answer");
            }
        }
    }
}

#[tokio::main]
async fn main() {
    let task: Value = serde_json::from_str(&std::env::args().nth(1).expect("a task")).expect("JSON");
    let text = |key: &str| task[key].as_str().expect(key).to_string();
    let number = |key: &str| task[key].as_f64().expect(key);
    let url = format!("redis://{}/", text("address"));
    let library = if text("library") == "rslock" {
        Library::Rslock(LockManager::new(vec![url]))
    } else {
        let client = Client::open(url).expect("an address");
        Library::Raw(client.get_multiplexed_async_connection().await.expect("a connection"))
    };
    let (name, own) = (text("name"), task["own"].as_bool().expect("own"));
    let (lanes, ttl_ms) = (number("lanes") as usize, number("ttlMs") as u64);
    let name_of = move |lane: usize| if own { format!("{name}:{lane}") } else { name.clone() };
    if text("op") == "hold" {
        let mut held = Vec::new();
        for lane in 0..lanes {
            held.push(library.take(&name_of(lane), ttl_ms).await);
        }
        println!("held");
        std::future::pending::<()>().await;
    }
    library.take(&format!("{}:warm-up:{}", text("name"), std::process::id()), ttl_ms).await.release().await;
    let section_ms = number("sectionMs");
    // It is ready, and reads when to begin and to end.
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the times");
    let times: Vec<f64> = line.split_whitespace().map(|time| time.parse().expect("a time")).collect();
    let (start_at, stop_at) = (times[0], times[1]);
    let entries = Arc::new(Mutex::new(Vec::<Value>::new()));
    let waiting = Arc::new(Mutex::new(vec![0.0; lanes]));
    sleep_until(start_at).await;
    let mut running = tokio::task::JoinSet::new();
    for lane in 0..lanes {
        let (library, entries, waiting, own_name) = (library.clone(), entries.clone(), waiting.clone(), name_of(lane));
        running.spawn(async move {
            while now() < stop_at {
                let asked = now();
                waiting.lock().unwrap()[lane] = asked;
                let held = library.take(&own_name, ttl_ms).await;
                let entered = now();
                if section_ms > 0.0 {
                    tokio::time::sleep(Duration::from_secs_f64(section_ms / 1e3)).await;
                }
                let left = now();
                held.release().await;
                waiting.lock().unwrap()[lane] = 0.0;
                entries.lock().unwrap().push(json!([lane, asked, entered, left]));
            }
        });
    }
    let limit = Duration::from_secs_f64(((stop_at - now()).max(0.0) + 200.0) / 1e3);
    let _ = tokio::time::timeout(limit, async { while running.join_next().await.is_some() {} }).await;
    let unserved: Vec<Value> = waiting.lock().unwrap().iter().enumerate()
        .filter(|(_, asked)| **asked > 0.0).map(|(lane, asked)| json!([lane, asked])).collect();
    println!("{}", json!({ "entries": *entries.lock().unwrap(), "unserved": unserved }));
    std::process::exit(0);
}
