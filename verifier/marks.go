package main

import (
	"fmt"
	"math/bits"
)

// A waiting is for other messages: in states of a machine of a message (by place) or, at -1, of what watches it, into which only events
// of other messages lead (lemma 4).
type waiting struct {
	machine int
	states  uint64
}

// broughtAboutByOthers has the least such set of states with this one, if there is one.
func broughtAboutByOthers(m *machine, state int) (uint64, bool) {
	narrow(m)
	found, fresh := uint64(1)<<state, []int{state}
	for len(fresh) > 0 {
		wanted := fresh[0]
		fresh = fresh[1:]
		if wanted == m.initial {
			return 0, false
		}
		for at, moves := range m.moves {
			for before, after := range moves {
				for _, to := range after {
					if (at.role == ofSystem || at.role == own) && to == wanted && found>>before&1 == 0 {
						found |= 1 << before
						fresh = append(fresh, before)
					}
				}
			}
		}
	}
	return found, true
}

func narrow(m *machine) {
	if len(m.states) > 64 {
		doNotUnderstand("%s, which has more than 64 states", m.name)
	}
}

var nothing = &machine{name: "nothing", states: []string{""}} // watches for nothing

// reached has for each view the states (bits) of what watches the message in a slot, or at -1 the system, in the product with the views
// from those begun on (nil: the first one); and those of them in which the other message is the cause of what it waits for.
func (v *views) reached(m *machine, slot int, begun []int, waits *waiting) (others, caused []uint64) {
	narrow(m)
	others, caused = make([]uint64, len(v.list)), make([]uint64, len(v.list))
	images := make([]func(uint64) uint64, len(v.kinds))
	byOther := make([]bool, len(v.kinds))
	for number, kind := range v.kinds {
		role := roleOfSystem(kind.roles)
		if slot >= 0 {
			role = kind.roles[slot]
		}
		images[number] = imageOf(m, on{role, kind.event})
		byOther[number] = waits != nil && kind.roles[1-slot] == own
	}
	inside := func(number int) uint64 {
		if waits == nil {
			return 0
		}
		if waits.machine < 0 {
			return waits.states
		}
		state := v.message.states[v.list[number][1+slot]][waits.machine]
		return -(waits.states >> state & 1)
	}
	if begun == nil {
		first := view{v.system.initial(), v.message.initial(), 0}
		if v.slots == 2 {
			first[2] = first[1]
		}
		begun = []int{v.index[first]}
	}
	var queue []int
	waitsInQueue := make([]bool, len(v.list))
	push := func(number int, newOthers, newCaused uint64) {
		if newOthers&^others[number]|newCaused&^caused[number] != 0 {
			others[number] |= newOthers
			caused[number] |= newCaused
			if !waitsInQueue[number] {
				waitsInQueue[number] = true
				queue = append(queue, number)
			}
		}
	}
	for _, number := range begun {
		push(number, 1<<m.initial, 0)
	}
	for len(queue) > 0 {
		number := queue[0]
		queue = queue[1:]
		waitsInQueue[number] = false
		before := inside(number)
		for at := v.first[number]; at < v.first[number+1]; at++ {
			image, after := images[v.kind[at]], inside(int(v.to[at]))
			stays, staysCaused := image(others[number]&before), image(caused[number]&before)
			enters := image((others[number] | caused[number]) &^ before)
			newOthers, newCaused := (stays|staysCaused|enters)&^after|stays&after, staysCaused&after
			if byOther[v.kind[at]] {
				newCaused |= enters & after
			} else {
				newOthers |= enters & after
			}
			push(int(v.to[at]), newOthers, newCaused)
		}
	}
	return others, caused
}

type cause struct {
	m     *machine
	slot  int
	waits waiting
}

// causedOf has for each pair the states of what watches the message in a slot in which the other one is the cause; what was found is kept.
func (v *views) causedOf(m *machine, slot int, waits waiting) []uint64 {
	key := cause{m, slot, waits}
	if v.caused[key] == nil {
		_, v.caused[key] = v.reached(m, slot, nil, &waits)
	}
	return v.caused[key]
}

func imageOf(m *machine, at on) func(uint64) uint64 {
	moves, hears := m.moves[at]
	if !hears {
		return func(states uint64) uint64 { return states }
	}
	images := make([]uint64, len(moves))
	for state, after := range moves {
		for _, to := range after {
			images[state] |= 1 << to
		}
	}
	return func(states uint64) (found uint64) {
		for ; states != 0; states &= states - 1 {
			found |= images[bits.TrailingZeros64(states)]
		}
		return found
	}
}

// slotsOf has the slots of views in which what watches may watch.
func (v *views) slotsOf(m *machine) []int {
	if !m.ofMessage {
		return []int{-1}
	}
	return []int{0, 1}[:v.slots]
}

// reachesMark tells whether a state is reached in some slot (lemma 2); one that others bring about, in a pair with the cause (lemma 4).
func (v *views) reachesMark(m *machine, state int) bool {
	var waits *waiting
	if states, some := broughtAboutByOthers(m, state); some && m.ofMessage && v.slots == 2 {
		waits = &waiting{-1, states}
	}
	for _, slot := range v.slotsOf(m) {
		others, caused := v.reached(m, slot, nil, waits)
		if waits == nil {
			caused = others
		}
		for _, states := range caused {
			if states>>state&1 == 1 {
				return true
			}
		}
	}
	return false
}

// A letter is a message at rest, by its class and by sets of events: its own that others have to refuse, those of later and of earlier
// messages that it refuses, and what it gives: the refusal of an event of the system, a part of a counter.
type letter struct {
	class                              int
	needs, forLater, forEarlier, gives set
	kind, notBefore, notBehind         set // bits of classes
}

func (l letter) key() string {
	return fmt.Sprintf("%x %x %x %x %x %x %x", l.needs, l.forLater, l.forEarlier, l.gives, l.kind, l.notBefore, l.notBehind)
}

// serves tells whether it can stand wherever the other one can.
func (l letter) serves(other letter) bool {
	return within(l.needs, other.needs) && within(other.forLater, l.forLater) && within(other.forEarlier, l.forEarlier) &&
		within(other.gives, l.gives) && within(l.notBefore, other.notBefore) && within(l.notBehind, other.notBehind) &&
		(and(l.notBefore, l.kind).Sign() == 0 || and(other.notBefore, other.kind).Sign() != 0)
}

// All that the letters which were read from right to left still lack: refusals for what stands before them, for their own needs, what is
// owed; and the kinds that do not stand before them.
type lacking struct{ unrefused, needed, owed, barred set }

func (l lacking) noMoreThan(other lacking) bool {
	return within(l.unrefused, other.unrefused) && within(l.needed, other.needed) && within(l.owed, other.owed) && within(l.barred, other.barred)
}

func (l lacking) read(one letter) lacking {
	needed := or(less(l.needed, one.forLater), and(one.needs, l.unrefused))
	return lacking{less(l.unrefused, one.forEarlier), needed, less(l.owed, one.gives), or(l.barred, one.notBehind)}
}

const mostReadings = 5000

// closed has all that can be lacking after any number of letters, but for what is no better than something else.
func closed(start []lacking, letters []letter) (best []lacking) {
	for fresh := start; len(fresh) > 0; {
		one := fresh[len(fresh)-1]
		fresh = fresh[:len(fresh)-1]
		better := false
		for _, other := range best {
			better = better || other.noMoreThan(one)
		}
		if better {
			continue
		}
		kept := []lacking{one}
		for _, other := range best {
			if !one.noMoreThan(other) {
				kept = append(kept, other)
			}
		}
		if best = kept; len(best) > mostReadings {
			doNotUnderstand("the search for messages at rest was given up")
		}
		for _, each := range letters {
			if and(one.barred, each.kind).Sign() == 0 {
				fresh = append(fresh, one.read(each))
			}
		}
	}
	return best
}

// canRest tells whether letters can stand before the marked one, and others behind it, so that all needs are refused and all that is
// owed is given (lemma 3).
func canRest(before []letter, marked letter, behind []letter, owed set) bool {
	all := append(append([]letter{marked}, before...), behind...)
	asked, given, refused := orNone(nil), orNone(nil), orNone(nil)
	for at, each := range all {
		asked, given = or(asked, each.needs), or(given, each.gives)
		if at > len(before) {
			refused = or(refused, each.forEarlier)
		} else if at > 0 {
			refused = or(refused, each.forLater)
		}
	}
	if !within(owed, given) || !within(marked.needs, refused) {
		return false
	}
	sides := possible(best(before, asked, owed), marked, best(behind, asked, owed))
	var begun []lacking
	for _, one := range closed([]lacking{{asked, orNone(nil), owed, orNone(nil)}}, sides[1]) {
		if and(one.barred, marked.kind).Sign() == 0 {
			begun = append(begun, one.read(marked))
		}
	}
	for _, one := range closed(begun, sides[0]) {
		if one.needed.Sign() == 0 && one.owed.Sign() == 0 {
			return true
		}
	}
	return false
}

// best has the letters as far as something of what they do is asked for, without those that another one serves for.
func best(letters []letter, asked, owed set) (kept []letter) {
	for _, each := range letters {
		each.forLater, each.forEarlier, each.gives = and(each.forLater, asked), and(each.forEarlier, asked), and(each.gives, owed)
		served, left := false, []letter{}
		for _, other := range kept {
			served = served || other.serves(each)
			if !each.serves(other) {
				left = append(left, other)
			}
		}
		if !served {
			kept = append(left, each)
		}
	}
	return kept
}

// possible leaves out letters with a need that no letter on the proper side refuses.
func possible(before []letter, marked letter, behind []letter) [2][]letter {
	sides := [2][]letter{before, behind}
	for {
		refused := [2]set{or(marked.forEarlier, orNone(nil)), or(marked.forLater, orNone(nil))} // to those before, and behind
		for side := range sides {
			for _, each := range sides[side] {
				refused[side] = or(refused[side], or(each.forLater, each.forEarlier))
			}
		}
		for _, each := range sides[0] {
			refused[1] = or(refused[1], each.forLater)
		}
		for _, each := range sides[1] {
			refused[0] = or(refused[0], each.forEarlier)
		}
		shrunk := false
		for side := range sides {
			kept := []letter{}
			for _, each := range sides[side] {
				if within(each.needs, refused[side]) {
					kept = append(kept, each)
				}
			}
			shrunk = shrunk || len(kept) < len(sides[side])
			sides[side] = kept
		}
		if !shrunk {
			return sides
		}
	}
}

// A rest has the letters of views, and the words that they make.
type rest struct {
	v       *views
	met     map[int][]letter // for a state of the system
	letters map[view]letter
	ways    map[waiting]way
}

// A way to wait has the classes of the causes that stand before such a message, and of those behind it, for a state of the system.
type way struct{ before, behind map[int]set }

func restOf(v *views) *rest {
	r := &rest{v, map[int][]letter{}, map[view]letter{}, map[waiting]way{}}
	for _, one := range v.list {
		r.letters[one] = r.letter(one[0], one[1])
	}
	r.met = r.distinct(v.list)
	return r
}

func (r *rest) distinct(list []view) map[int][]letter {
	found, known := map[int][]letter{}, map[string]bool{}
	for _, one := range list {
		letter := r.letters[one]
		key := fmt.Sprint(one[0], letter.class, letter.key())
		if !known[key] {
			known[key] = true
			found[one[0]] = append(found[one[0]], letter)
		}
	}
	return found
}

func (r *rest) letter(system, message int) letter {
	of := func(role int) set { return r.v.message.reply(message, role).accepts }
	may := and(r.v.enabled(system), r.v.awaited)
	ofMessages := and(may, r.v.system.reply(system, own).accepts)
	gives := less(less(may, ofMessages), of(ofSystem))
	for at, count := range []byte(r.v.counts(message)) {
		if count > 0 {
			gives.SetBit(gives, len(r.v.net.events)+at, 1)
		}
	}
	class, none := 0, orNone(nil)
	if r.v.relation != nil {
		class = r.v.relation.classes[message]
	}
	return letter{class, and(ofMessages, of(own)), less(ofMessages, of(later)), less(ofMessages, of(earlier)), gives, none, none, none}
}

// owed has what letters have to give: refuse each event of the system, hold a part of each counter that is above 0.
func (r *rest) owed(system int) set {
	owed := and(r.v.system.reply(system, ofSystem).accepts, r.v.awaited)
	for at, ghost := range r.v.ghosts {
		if r.v.highest(ghost.counter, system) != 0 {
			owed.SetBit(owed, len(r.v.net.events)+at, 1)
		}
	}
	return owed
}

// shows tells whether a message of one of the marked views can be at rest, with others beside it; m watches for the mark, a state of it.
func (r *rest) shows(marked []view, among map[int][]letter, m *machine, state int) bool {
	for system, letters := range r.distinct(marked) {
		for _, one := range letters {
			if r.stands(system, one, among[system], m, state) {
				return true
			}
		}
	}
	return false
}

func (r *rest) stands(system int, marked letter, others []letter, m *machine, state int) bool {
	owed, related := r.owed(system), r.v.relation
	if r.v.level == "alone" {
		return canRest(nil, marked, nil, owed)
	}
	if related == nil {
		return canRest(others, marked, others, owed)
	}
	var sides [2][]letter // before the marked message, and behind it
	for side := range sides {
		beside := related.beside(system, marked.class, 1-side)
		for _, each := range others {
			if has(beside, each.class) {
				sides[side] = append(sides[side], each)
			}
		}
	}
	if !canRest(sides[0], marked, sides[1], owed) {
		return false
	}
	waits := r.waits(marked.class)
	if states, some := broughtAboutByOthers(m, state); some {
		waits = append(waits, waiting{-1, states})
	}
	for number, each := range waits {
		promise := len(r.v.net.events) + len(r.v.ghosts) + number
		owed = or(owed, bit(promise))
		for side := range sides {
			causes := r.causes(m, each, 1-side, state, related.system[system], marked.class)
			for at := range sides[side] {
				if has(causes, sides[side][at].class) {
					sides[side][at].gives = or(sides[side][at].gives, bit(promise))
				}
			}
		}
	}
	marked = r.chained(system, marked)
	for side := range sides {
		for at := range sides[side] {
			sides[side][at] = r.chained(system, sides[side][at])
		}
	}
	return canRest(sides[0], marked, sides[1], owed)
}

// waits has what a message of a class waits for.
func (r *rest) waits(class int) (found []waiting) {
	if class < 0 {
		return nil
	}
	message := r.v.relation.pairs.message
	for at, part := range message.parts {
		if states, some := broughtAboutByOthers(part, int(message.states[class][at])); some {
			found = append(found, waiting{at, states})
		}
	}
	return found
}

// causes has the classes that are the cause for a message of a class in a slot, while what watches it is in a state.
func (r *rest) causes(m *machine, waits waiting, slot, state, system, class int) set {
	pairs := r.v.relation.pairs
	caused, found := pairs.causedOf(m, slot, waits), orNone(nil)
	for _, number := range r.v.relation.halves[[3]int{system, class, slot}] {
		if caused[number]>>state&1 == 1 {
			found.SetBit(found, pairs.list[number][2-slot], 1)
		}
	}
	return found
}

// chained is the letter with one more event for each way to wait: who waits needs it refused, and a cause refuses it; and with the kinds
// that it does not stand beside.
func (r *rest) chained(system int, one letter) letter {
	mine := r.waits(one.class)
	one.kind, one.notBefore, one.notBehind = orNone(nil), orNone(nil), orNone(nil)
	number := len(r.v.net.events)
	known := map[int]bool{}
	listed := map[waiting]bool{}
	of := r.v.relation.system[system]
	for _, other := range r.met[system] {
		if !known[other.class] {
			known[other.class] = true
			if other.class == one.class {
				one.kind = bit(len(known))
			}
			if !has(r.v.relation.beside(system, one.class, 0), other.class) {
				one.notBefore = or(one.notBefore, bit(len(known)))
			}
			if !has(r.v.relation.beside(system, one.class, 1), other.class) {
				one.notBehind = or(one.notBehind, bit(len(known)))
			}
			for _, each := range r.waits(other.class) {
				if listed[each] {
					continue
				}
				listed[each] = true
				for _, waits := range mine {
					if waits == each {
						one.needs = or(one.needs, bit(number))
					}
				}
				way := r.way(each)
				if has(orNone(way.before[of]), one.class) {
					one.forLater = or(one.forLater, bit(number))
				}
				if has(orNone(way.behind[of]), one.class) {
					one.forEarlier = or(one.forEarlier, bit(number))
				}
				number++
			}
		}
	}
	return one
}

func (r *rest) way(waits waiting) way {
	found, known := r.ways[waits]
	if !known {
		found = way{map[int]set{}, map[int]set{}}
		pairs := r.v.relation.pairs
		for slot, side := range []map[int]set{found.behind, found.before} {
			caused := pairs.causedOf(nothing, slot, waits)
			for number, one := range pairs.list {
				if caused[number] != 0 {
					side[one[0]] = or(orNone(side[one[0]]), bit(one[2-slot]))
				}
			}
		}
		r.ways[waits] = found
	}
	return found
}
