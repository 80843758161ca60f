//! Searches the network in the file that is named, one thread, breadth first, and prints its states and transitions.
//!
//! The file has whole numbers: the machines and their first states; for each event how many participants it has, and
//! for each of these its machine, how many states that has, and where each goes (-1: it refuses).

use stateright::{Checker, Model, Property};

struct Participant {
    machine: usize,
    target: Vec<i16>,
}

struct Network {
    initial: Vec<u8>,
    events: Vec<Vec<Participant>>,
}

impl Model for Network {
    type State = Vec<u8>;
    type Action = usize;

    fn init_states(&self) -> Vec<Vec<u8>> {
        vec![self.initial.clone()]
    }

    fn actions(&self, state: &Vec<u8>, actions: &mut Vec<usize>) {
        for (number, participants) in self.events.iter().enumerate() {
            if participants.iter().all(|p| p.target[state[p.machine] as usize] >= 0) {
                actions.push(number);
            }
        }
    }

    fn next_state(&self, state: &Vec<u8>, event: usize) -> Option<Vec<u8>> {
        let mut after = state.clone();
        for p in &self.events[event] {
            after[p.machine] = p.target[state[p.machine] as usize] as u8;
        }
        Some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("any", |_, _| true)]
    }
}

fn read(text: &str) -> Network {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<i64>().expect("a whole number"));
    let mut next = || numbers.next().expect("one more number");
    let machines = next();
    let initial = (0..machines).map(|_| next() as u8).collect();
    let mut events = Vec::new();
    for _ in 0..next() {
        let mut participants = Vec::new();
        for _ in 0..next() {
            let (machine, size) = (next() as usize, next());
            participants.push(Participant { machine, target: (0..size).map(|_| next() as i16).collect() });
        }
        events.push(participants);
    }
    Network { initial, events }
}

fn main() {
    let file = std::env::args().nth(1).expect("the file of a network");
    let network = read(&std::fs::read_to_string(file).expect("a file that can be read"));
    let found = network.checker().threads(1).spawn_bfs().join();
    println!("{} {}", found.unique_state_count(), found.state_count());
}
