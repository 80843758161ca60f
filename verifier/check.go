package main

// checkInvariant sees that views are closed, and returns why what watches is not shown never to be marked (nil: it is shown).
func checkInvariant(told invariant, nets []*net) map[watching]*failure {
	least := map[string]int{"alone": 1, "chaos": 1, "related": 2}[told.Level]
	if least == 0 {
		doNotUnderstand("the level %q", told.Level)
	}
	if told.Least < least || (told.Most != nil && *told.Most < told.Least) || (told.Level == "alone" && (told.Most == nil || *told.Most > 1)) {
		refute("it is not for numbers of messages that views of its level can be for")
	}
	var of *net
	for _, each := range nets {
		if each.least <= told.Least && (each.most == nil || (told.Most != nil && *told.Most <= *each.most)) {
			of = each
		}
	}
	if of == nil {
		refute("the systems of so many messages are not one")
	}
	var watchers []watcher
	hearing := []*machine{}
	for _, one := range told.Watchers {
		watchers = append(watchers, of.watcher(one.Anomaly, one.Machine))
	}
	for _, each := range told.Followed {
		for _, one := range each.Watchers {
			hearing = append(hearing, of.watcher(one.Anomaly, one.Machine).part)
		}
	}
	r := closedViews(of, told.shown, told.Level, told.Most, watchers, hearing)
	found := map[watching]*failure{}
	for _, w := range watchers {
		w := w
		found[watching{w.anomaly, w.part.name}] = try(func() { r.check(w) })
	}
	for _, each := range told.Followed {
		each := each
		for _, one := range each.Watchers {
			w := of.watcher(one.Anomaly, one.Machine)
			found[watching{w.anomaly, w.part.name}] = try(func() { r.checkFollowed(w, each, told.Most) })
		}
	}
	return found
}

func (n *net) watcher(anomaly, machine string) watcher {
	for _, each := range n.watchers {
		if each.anomaly == anomaly && each.part.name == machine {
			return each
		}
	}
	refute("no machine %s watches for %s", machine, anomaly)
	return watcher{}
}

// closedViews sees that views are closed, and the relation that they ask, beside watchers and machines that hear all of one message.
func closedViews(of *net, told shown, level string, most *int, watchers []watcher, hearing []*machine) *rest {
	v := viewsOf(of, told.stated, level, 1, most)
	hears := func(place []int) set {
		heard := orNone(nil)
		hear := func(m *machine, role int) {
			for at := range m.moves {
				if at.role == role {
					heard.SetBit(heard, at.event, 1)
				}
			}
		}
		for _, role := range place {
			for _, each := range watchers {
				if each.part.ofMessage {
					hear(each.part, role)
				} else {
					hear(each.part, roleOfSystem(place))
				}
				if each.count != nil {
					hear(each.count.part, role)
					for _, one := range of.ghosts {
						hear(one.part, role)
					}
				}
			}
			for heardIn := range roles {
				for _, each := range hearing {
					if role == own {
						hear(each, heardIn)
					}
				}
			}
		}
		return heard
	}
	if level == "related" {
		if told.Relation == nil {
			refute("it has no relation")
		}
		v.relation = relationOf(v, *told.Relation, most)
	}
	v.close(hears)
	if v.relation != nil {
		v.relation.pairs.close(hears)
	}
	return restOf(v)
}

// check sees that what watches is never marked: not at any time (lemmas 2 and 4), nor at rest (lemmas 3 and 4).
func (r *rest) check(w watcher) {
	every := []*views{r.v}
	if r.v.relation != nil {
		every = append(every, r.v.relation.pairs)
	}
	for _, state := range w.marked {
		marked, bounded := true, false
		for _, v := range every {
			marked = marked && v.reachesMark(w.part, state)
		}
		for _, v := range every {
			bounded = bounded || (marked && v.staysWithinABound(w.count))
		}
		if marked && !bounded {
			refute("it is marked beside one of its views")
		}
	}
	slot := r.v.slotsOf(w.part)[0]
	for _, state := range w.atRest {
		reached, _ := r.v.reached(w.part, slot, nil, nil)
		marked := r.in(reached, state)
		among, m, at := r.met, w.part, state
		if !w.part.ofMessage {
			m, at = nothing, 0
			if r.v.relation == nil {
				among = r.distinct(marked)
			}
		}
		if r.shows(marked, among, m, at) {
			refute("it is marked beside views that can be at rest")
		}
	}
}

// in has the views in which a state of what watches is reached.
func (r *rest) in(reached []uint64, state int) (found []view) {
	for number, one := range r.v.list {
		if reached[number]>>state&1 == 1 {
			found = append(found, one)
		}
	}
	return found
}

// staysWithinABound tells whether a counter of the system that refuses to go beyond the same bound has all that was counted.
func (v *views) staysWithinABound(count *ghost) bool {
	for at, guard := range v.ghosts {
		if count != nil && guard.exact && guard.refuses && guard.bound == count.bound {
			if v.isAtMost(count, at) || v.isAtMostDelayed(count, guard.ghost, at) {
				return true
			}
		}
	}
	return false
}

func (v *views) isAtMost(count *ghost, guard int) bool {
	for slot := 0; slot < v.slots; slot++ {
		reached, _ := v.reached(count.part, slot, nil, nil)
		for number, states := range reached {
			if states>>lost != 0 || states>>(v.counts(v.list[number][1+slot])[guard]+1) != 0 {
				return false
			}
		}
	}
	return true
}

// Delayed ghosts (lemma 5) are one machine with what watches: whether it is closed, what it keeps and what watches has, or bad.
const bad = 2 * lost * lost

func delayedState(closed bool, keeps, counts int) int {
	if keeps == lost || counts == lost {
		return bad
	}
	if closed {
		return (lost+keeps)*lost + counts
	}
	return keeps*lost + counts
}

// resets has the events that make the ghost of every message 0.
func (g *ghost) resets() map[int]bool {
	found := map[int]bool{}
	for at, moves := range g.part.moves {
		if moves[1][0] == 0 && moves[2][0] == 0 {
			found[at.event] = true
		}
	}
	return found
}

func (v *views) isAtMostDelayed(count, guard *ghost, at int) bool {
	opening, closing := count.resets(), map[int]bool{}
	for e := range guard.resets() {
		delete(opening, e)
	}
	if len(opening) == 0 {
		return false
	}
	every := func(m *machine, is func(state int, counted int) bool) bool {
		for slot := 0; slot < v.slots; slot++ {
			reached, _ := v.reached(m, slot, nil, nil)
			for number, states := range reached {
				for state := range m.states {
					if states>>state&1 == 1 && !is(state, int(v.counts(v.list[number][1+slot])[at])) {
						return false
					}
				}
			}
		}
		return true
	}
	for e := range guard.resets() {
		if every(delayed(count, guard, opening, map[int]bool{e: true}), func(state, _ int) bool { return state != bad }) {
			closing[e] = true
		}
	}
	return every(delayed(count, guard, opening, closing), func(state, counted int) bool {
		keeps, counts := state/lost, state%lost
		return state != bad && counts <= keeps%lost && (keeps >= lost || keeps == counted)
	})
}

func delayed(count, guard *ghost, opening, closing map[int]bool) *machine {
	m := &machine{name: "delayed " + guard.part.name, states: make([]string, bad+1), moves: map[on][][]int{}}
	for _, g := range []*ghost{count, guard} {
		for at := range g.part.moves {
			moves := make([][]int, bad+1)
			for state := range moves {
				closed, keeps, counts := state >= lost*lost, state/lost%lost, state%lost
				after := bad
				if state != bad {
					kept := keeps
					if heard, hears := guard.part.moves[at]; hears {
						kept = heard[keeps][0]
					}
					if heard, hears := count.part.moves[at]; hears {
						counts = heard[counts][0]
					}
					switch {
					case opening[at.event]:
						after = delayedState(false, 0, counts)
					case closed && kept == keeps+1: // it counts up while it is closed
					case closed || closing[at.event]:
						after = delayedState(true, keeps, counts)
					default:
						after = delayedState(false, kept, counts)
					}
				}
				moves[state] = []int{after}
			}
			m.moves[at] = moves
		}
	}
	return m
}
