package main

import (
	"math/big"
	"reflect"
	"strings"
)

// A part is an event of the whole, that is in one of some roles to the followed message.
type part struct {
	event int
	roles []int
}

var ofMessages = []int{own, earlier, later}

const added = 2 // so many states what watches a message has more: it knows nothing of a choice, or that another one was chosen

// followed is the system in which the message of a watcher is chosen before all else, and what watches that one alone (lemma 10).
func (n *net) followed(w watcher) *net {
	alive := map[int]bool{}
	for _, state := range append(append([]int{}, w.marked...), w.atRest...) {
		alive[state] = true
	}
	anyMove := func(do func(from, to int)) {
		for _, moves := range w.part.moves {
			for from, after := range moves {
				for _, to := range after {
					do(from, to)
				}
			}
		}
	}
	for before := -1; before < len(alive); {
		before = len(alive)
		anyMove(func(from, to int) {
			if alive[to] {
				alive[from] = true
			}
		})
	}
	atRest := map[int]bool{}
	for _, state := range w.atRest {
		atRest[state] = true
	}
	if anyMove(func(from, to int) {
		if atRest[from] && from != to && alive[to] {
			refute("%s is marked at rest again, and cannot be followed", w.part.name)
		}
	}); !w.part.ofMessage || len(atRest) == 0 {
		refute("%s cannot be followed", w.part.name)
	}
	places := [][]int{{own}, {earlier, later}} // what a message can be to the followed one, as far as what watches tells
	for e := range n.events {
		if !reflect.DeepEqual(w.part.moves[on{earlier, e}], w.part.moves[on{later, e}]) {
			places = [][]int{{own}, {earlier}, {later}}
		}
	}
	parts := []part{{-1, nil}} // number 0 is the choice
	f := &net{events: []event{{"follow", true, false}}, ghosts: map[string]*ghost{}}
	numbers := make([][]int, len(n.events))
	for e, event := range n.events {
		begun := len(parts)
		if !event.ofMessage {
			parts = append(parts, part{e, []int{ofSystem}})
		}
		for _, place := range places {
			known := !event.ofMessage
			for at := begun; at < len(parts) && event.ofMessage && !known; at++ {
				if reflect.DeepEqual(w.part.moves[on{parts[at].roles[0], e}], w.part.moves[on{place[0], e}]) {
					parts[at].roles, known = append(append([]int{}, parts[at].roles...), place...), true
				}
			}
			if !known {
				parts = append(parts, part{e, place})
			}
		}
		for number := begun; number < len(parts); number++ {
			f.events = append(f.events, event)
			numbers[e] = append(numbers[e], number)
		}
	}
	renumbered := func(m *machine) *machine {
		copied := *m
		copied.moves = map[on][][]int{}
		for at, moves := range m.moves {
			for _, number := range numbers[at.event] {
				copied.moves[on{at.role, number}] = moves
			}
		}
		return &copied
	}
	for _, m := range n.machines {
		if !m.watches {
			f.machines = append(f.machines, renumbered(m))
		}
	}
	f.machines = append(f.machines, following(w, alive, atRest, parts), placeOf(places, parts))
	for name, g := range n.ghosts {
		down := new(big.Int)
		each(g.down, func(e int) {
			for _, number := range numbers[e] {
				down.SetBit(down, number, 1)
			}
		})
		f.ghosts[name] = &ghost{renumbered(g.part), down, g.bound, g.refuses}
	}
	f.watchers = []watcher{watchingOne(w, parts)}
	return f
}

// following is what watches as a machine of the system: it is told first, and stops at a mark at rest, and without hope.
func following(w watcher, alive, atRest map[int]bool, parts []part) *machine {
	m := &machine{name: "following by " + w.part.name, states: []string{"unknown"}, moves: map[on][][]int{}}
	number := map[int]int{}
	for state, name := range w.part.states {
		if alive[state] {
			number[state] = len(m.states)
			m.states = append(m.states, name)
		}
	}
	over := len(m.states)
	m.states = append(m.states, "over")
	numbered := func(state int) int {
		if alive[state] {
			return number[state]
		}
		return over
	}
	m.moves[on{own, 0}] = make([][]int, over+1)
	m.moves[on{own, 0}][0] = []int{numbered(w.part.initial)}
	for e, part := range parts[1:] {
		moves := make([][]int, over+1)
		for state := range w.part.states {
			after := []int{state}
			if heard, hears := w.part.moves[on{part.roles[0], part.event}]; hears {
				after = heard[state]
			}
			for _, to := range after {
				if alive[state] && !atRest[state] {
					moves[number[state]] = append(moves[number[state]], numbered(to))
				}
			}
		}
		m.moves[on{roleOfSystem(part.roles), e + 1}] = moves
	}
	return m
}

// placeOf is what a message knows of its place, and has its events in: it is later where the followed one is earlier.
func placeOf(places [][]int, parts []part) *machine {
	m := &machine{name: "place", states: []string{"unknown"}, moves: map[on][][]int{}, ofMessage: true}
	number := map[int]int{}
	for _, place := range places {
		names := []string{}
		for _, role := range place {
			number[role] = len(m.states)
			names = append(names, roles[role])
		}
		m.states = append(m.states, strings.Join(names, " or "))
	}
	for role, mine := range map[int]int{own: own, earlier: later, later: earlier} {
		moves := make([][]int, len(m.states))
		moves[0] = []int{number[mine]}
		m.moves[on{role, 0}] = moves
	}
	for e, part := range parts[1:] {
		if part.roles[0] != ofSystem {
			moves := make([][]int, len(m.states))
			for _, role := range part.roles {
				moves[number[role]] = []int{number[role]}
			}
			m.moves[on{own, e + 1}] = moves
		}
	}
	return m
}

// watchingOne is what watches each message, and goes on if that is the followed one.
func watchingOne(w watcher, parts []part) watcher {
	states := append([]string{"unknown", "another is followed"}, w.part.states...)
	m := &machine{name: w.part.name, states: states, moves: map[on][][]int{}, ofMessage: true, watches: true}
	for _, role := range ofMessages {
		moves := [][]int{{1}}
		if role == own {
			moves = [][]int{{w.part.initial + added}}
		}
		for state := 1; state < len(states); state++ {
			moves = append(moves, []int{state})
		}
		m.moves[on{role, 0}] = moves
	}
	for e, part := range parts[1:] {
		for role := range roles {
			heard, hears := w.part.moves[on{role, part.event}]
			if !hears {
				continue
			}
			moves := [][]int{{0}, {1}}
			for _, after := range heard {
				moves = append(moves, raised(after))
			}
			m.moves[on{role, e + 1}] = moves
		}
	}
	return watcher{w.anomaly, m, raised(w.marked), raised(w.atRest), nil}
}

func raised(states []int) (found []int) {
	for _, state := range states {
		found = append(found, state+added)
	}
	return found
}

// checkFollowed sees that no followed message comes to rest with its mark (lemma 10).
func (r *rest) checkFollowed(w watcher, told shown, most *int) {
	f := r.v.net.followed(w)
	one := f.watchers[0]
	pairs := closedViews(f, told, "related", most, f.watchers, nil).v.relation.pairs
	for _, state := range one.marked {
		if pairs.reachesMark(one.part, state) {
			refute("it is marked beside a pair with the message that it follows")
		}
	}
	for _, state := range w.atRest {
		if r.mayRest(pairs, w.part, one.part, state) {
			refute("nothing has to take it back from its mark")
		}
	}
}

// mayRest tells whether the message can be at rest with its mark, and who brought that about can be, too.
func (r *rest) mayRest(pairs *views, watches, following *machine, state int) bool {
	var marked [2][]uint64
	states, some := broughtAboutByOthers(following, state+added)
	for slot := range marked {
		if some {
			marked[slot] = pairs.causedOf(following, slot, waiting{-1, states})
		} else {
			marked[slot], _ = pairs.reached(following, slot, nil, nil)
		}
	}
	return (!some || r.stays(r.begun(pairs, marked, state, 1), watches, state, []int{earlier, later})) &&
		r.stays(r.begun(pairs, marked, state, 0), watches, state, []int{own})
}

// begun has the related views of the marked message, or of the other one of the pair, where it is marked.
func (r *rest) begun(pairs *views, marked [2][]uint64, state, other int) []int {
	found, known := []int{}, map[[2]int]bool{}
	for slot := range marked {
		for number, one := range pairs.list {
			whose := one[1+(slot+other)%2]
			if marked[slot][number]>>(state+added)&1 == 1 && !known[[2]int{one[0], whose}] {
				known[[2]int{one[0], whose}] = true
				system, met := r.v.system.index[pairs.system.as(pairs.system.states[one[0]], r.v.system)]
				message, metToo := r.v.message.index[pairs.message.as(pairs.message.states[whose], r.v.message)]
				if at, there := r.v.index[view{system, message, 0}]; met && metToo && there {
					found = append(found, at)
				}
			}
		}
	}
	return found
}

// stays tells whether a message can be at rest after one of the views begun without taking the mark back, in one of these roles to the marked.
func (r *rest) stays(begun []int, watches *machine, state int, roles []int) bool {
	takenBack := &machine{name: "taken back", states: []string{"no", "yes"}, moves: map[on][][]int{}}
	for e := range r.v.net.events {
		takes := true
		for _, role := range roles {
			moves, hears := watches.moves[on{role, e}]
			takes = takes && hears
			for at := 0; takes && at < len(moves[state]); at++ {
				takes = moves[state][at] != state
			}
		}
		if takes {
			takenBack.moves[on{own, e}] = [][]int{{1}, {1}}
		}
	}
	reached, _ := r.v.reached(takenBack, 0, begun, nil)
	return r.shows(r.in(reached, 0), r.met, nothing, 0)
}
