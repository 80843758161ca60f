package main

import (
	"math/big"
	"strings"
)

// The roles in which a machine hears an event: of the system, of its own message, of an earlier or of a later one.
const (
	ofSystem = iota
	own
	earlier
	later
)

var roles = []string{"system", "own", "earlier", "later"}

const lost = 5 // the state of a ghost that has counted beyond 4

type on struct{ role, event int }

// A machine in numbers: for each event in a role and each state those that follow, none where it is refused.
// An event that it has no moves for changes nothing.
type machine struct {
	name               string
	states             []string
	initial            int
	moves              map[on][][]int
	highest            []*int // of a counter: what number a state may stand for
	ofMessage, watches bool
}

func (m *machine) state(name string) int {
	for at, known := range m.states {
		if known == name {
			return at
		}
	}
	refute("%s has no state %q", m.name, name)
	return -1
}

type event struct {
	name               string
	ofMessage, awaited bool
}

// A ghost is what each message counts on a counter of the system (lemma 0).
type ghost struct {
	part    *machine
	down    set
	bound   int
	refuses bool
}

type watcher struct {
	anomaly        string
	part           *machine
	marked, atRest []int
	count          *ghost // if it is marked only beyond the bound of what it counts
}

// A net is the system of a family.
type net struct {
	least    int
	most     *int
	events   []event
	machines []*machine
	ghosts   map[string]*ghost
	watchers []watcher
}

// Sets of events, kinds and classes are bits.
type set = *big.Int

func bit(number int) set    { return new(big.Int).SetBit(new(big.Int), number, 1) }
func or(a, b set) set       { return new(big.Int).Or(a, b) }
func and(a, b set) set      { return new(big.Int).And(a, b) }
func less(a, b set) set     { return new(big.Int).AndNot(a, b) }
func has(a set, n int) bool { return n >= 0 && a.Bit(n) == 1 }
func within(a, b set) bool {
	for at, word := range a.Bits() {
		if at >= len(b.Bits()) || word&^b.Bits()[at] != 0 {
			return false
		}
	}
	return true
}

func setOf(n int, is func(int) bool) set {
	found := new(big.Int)
	for number := 0; number < n; number++ {
		if is(number) {
			found.SetBit(found, number, 1)
		}
	}
	return found
}

func each(a set, do func(int)) {
	for number := 0; number < a.BitLen(); number++ {
		if a.Bit(number) == 1 {
			do(number)
		}
	}
}

func netOf(told family) *net {
	n := &net{least: told.Least, most: told.Most, ghosts: map[string]*ghost{}}
	byName := map[string]*machine{}
	for _, each := range told.Machines {
		m := &machine{each.Machine, each.States, 0, map[on][][]int{}, each.Highest, each.Of == "message", each.Watches}
		if byName[m.name] != nil || len(m.states) > 255 || (len(m.highest) != 0 && len(m.highest) != len(m.states)) {
			doNotUnderstand("the machine %s of the network, which is there twice or has too many states", m.name)
		}
		m.initial = m.state(each.Initial)
		byName[m.name] = m
		n.machines = append(n.machines, m)
	}
	known := func(name string) *machine {
		if byName[name] == nil {
			doNotUnderstand("the network has no machine %q", name)
		}
		return byName[name]
	}
	numbers := map[string]int{}
	for number, each := range told.Events {
		n.events = append(n.events, event{each.Event, each.Of == "message", each.Awaited})
		numbers[each.Event] = number
		for _, part := range each.Participants {
			m := known(part.Machine)
			role := 0
			for role < len(roles) && roles[role] != part.Role {
				role++
			}
			if role == len(roles) || (role == ofSystem) == (each.Of == "message") || (role > own && !m.ofMessage) {
				doNotUnderstand("%s hears %s as one of %q", m.name, each.Event, part.Role)
			}
			m.moves[on{role, number}] = movesOf(m, part.Moves)
		}
	}
	if len(numbers) != len(told.Events) {
		doNotUnderstand("the network has an event twice")
	}
	for _, each := range told.Counters {
		n.ghosts[each.Machine] = ghostOf(known(each.Machine), each, numbers, n.events)
	}
	for _, each := range told.Watchers {
		w := watcher{each.Anomaly, known(each.Machine), nil, nil, nil}
		for _, name := range each.Marked {
			w.marked = append(w.marked, w.part.state(name))
		}
		for _, name := range each.AtRest {
			w.atRest = append(w.atRest, w.part.state(name))
		}
		for _, state := range append(append([]int{}, w.marked...), w.atRest...) {
			if each.Counts != nil && (len(w.part.highest) == 0 || w.part.highest[state] != nil) {
				doNotUnderstand("%s, which counts and is not only marked beyond its bound", each.Machine)
			}
		}
		if each.Counts != nil {
			w.count = ghostOf(w.part, *each.Counts, numbers, n.events)
		}
		n.watchers = append(n.watchers, w)
	}
	return n
}

func movesOf(m *machine, told map[string][]string) [][]int {
	moves := make([][]int, len(m.states))
	for state := range moves {
		moves[state] = []int{state}
	}
	for from, targets := range told {
		after := []int{}
		for _, to := range targets {
			after = append(after, m.state(to))
		}
		if (len(after) == 0 && m.watches) || (len(after) > 1 && m.ofMessage && !m.watches) {
			doNotUnderstand("%s, which watches and refuses, or is of a message and may go to several states", m.name)
		}
		moves[m.state(from)] = after
	}
	return moves
}

// ghostOf makes the ghost of a counter, and sees that what it counts is what moves the counter.
func ghostOf(m *machine, told counter, numbers map[string]int, events []event) *ghost {
	g := &ghost{&machine{name: "ghost of " + m.name, states: []string{"0", "1", "2", "3", "4", "lost"}, moves: map[on][][]int{}},
		new(big.Int), told.Bound, told.Refuses}
	if m.ofMessage || len(m.highest) == 0 || (!m.watches && !told.Refuses && len(told.Down) > 0) {
		doNotUnderstand("%s, which is no counter of the system that has a ghost", m.name)
	}
	counted := map[int]bool{}
	add := func(names []string, after func(int) int, reset bool) {
		for _, name := range names {
			number, ok := numbers[name]
			if !ok || counted[number] || (!reset && !events[number].ofMessage) {
				doNotUnderstand("what %s counts by %q", m.name, name)
			}
			counted[number] = true
			moves := make([][]int, lost+1)
			for state := range moves {
				moves[state] = []int{after(state)}
			}
			for role := range roles {
				if (role == ofSystem) != events[number].ofMessage && (reset || role == own) {
					g.part.moves[on{role, number}] = moves
				}
			}
			from := m.moves[on{own, number}]
			if !events[number].ofMessage {
				from = m.moves[on{ofSystem, number}]
			}
			if from == nil || (after(0) == 1) != (len(from[m.initial]) > 0 && from[m.initial][0] != m.initial) {
				doNotUnderstand("%s does not count %s so", m.name, name)
			}
			for state, most := range m.highest {
				if told.Refuses && !m.watches && after(0) == 1 && most != nil && *most == told.Bound && len(from[state]) > 0 {
					doNotUnderstand("%s does not refuse %s at its bound", m.name, name)
				}
			}
		}
	}
	add(told.Up, func(state int) int { return []int{1, 2, 3, 4, lost, lost}[state] }, false)
	add(told.Down, func(state int) int { return []int{0, 0, 1, 2, 3, lost}[state] }, false)
	add(told.Reset, func(int) int { return 0 }, true)
	for _, name := range told.Down {
		g.down.SetBit(g.down, numbers[name], 1)
	}
	for at, moves := range m.moves {
		for state, after := range moves {
			if len(after) > 0 && (len(after) > 1 || after[0] != state) && !counted[at.event] {
				doNotUnderstand("%s is moved by %s, which is not counted", m.name, events[at.event].name)
			}
		}
	}
	return g
}

// A space has the combinations of states of some machines, a byte each; those behind the given ones are met on the way.
type space struct {
	parts  []*machine
	states []string
	index  map[string]int
	given  int
	events []event
	known  map[on]*reply
}

// A reply is what a state of a space does with events in one role: those that it accepts, and what those lead to that change it.
type reply struct {
	accepts, changes set
	to               map[int][]int
}

func (s *space) number(state string) int {
	if _, ok := s.index[state]; !ok {
		s.index[state] = len(s.states)
		s.states = append(s.states, state)
	}
	return s.index[state]
}

func (s *space) initial() int {
	var state []byte
	for _, part := range s.parts {
		state = append(state, byte(part.initial))
	}
	return s.number(string(state))
}

func (s *space) reply(number, role int) *reply {
	found := s.known[on{role, number}]
	if found == nil {
		found = &reply{new(big.Int), new(big.Int), map[int][]int{}}
		s.known[on{role, number}] = found
		for e, event := range s.events {
			if event.ofMessage != (role != ofSystem) {
				continue
			}
			after := []string{""}
			state := s.states[number]
			for at, part := range s.parts {
				targets := []int{int(state[at])}
				if moves, hears := part.moves[on{role, e}]; hears {
					targets = moves[state[at]]
				}
				var longer []string
				for _, begun := range after {
					for _, to := range targets {
						longer = append(longer, begun+string([]byte{byte(to)}))
					}
				}
				after = longer
			}
			if len(after) == 0 {
				continue
			}
			found.accepts.SetBit(found.accepts, e, 1)
			if len(after) > 1 || after[0] != state {
				found.changes.SetBit(found.changes, e, 1)
				for _, each := range after {
					found.to[e] = append(found.to[e], s.number(each))
				}
			}
		}
	}
	return found
}

// as has the same state as the machines of another space are in; this one has all of those.
func (s *space) as(state string, other *space) string {
	var found []byte
	for _, part := range other.parts {
		at := 0
		for at < len(s.parts) && s.parts[at].name != part.name {
			at++
		}
		if at == len(s.parts) {
			refute("%s is not kept where it is asked for", part.name)
		}
		found = append(found, byte(part.state(s.parts[at].states[state[at]])))
	}
	return string(found)
}

type view = [3]int // the system, and one message or two of them (else 0), by number

// Views are those of an invariant, or the pairs of a relation.
type views struct {
	net             *net
	level           string
	slots           int  // messages of a view
	others          bool // whether there are messages beside those
	system, message *space
	list            []view
	index           map[view]int
	ghosts          []kept
	awaited         set
	met             func(system, message string) bool // of pairs: whether a half is a part of some view
	places          [][]int                           // what an event is to each message of a view
	first           []int                             // of each view its steps are those from first[v] to first[v+1]
	to              []int32
	kind            []uint16
	kinds           []kind
	relation        *relation
	caused          map[cause][]uint64
}

// A kept ghost is exact, or only covers its counter, which is at this place of the system.
type kept struct {
	*ghost
	counter int
	exact   bool
}

type kind struct {
	event int
	roles []int
}

func viewsOf(n *net, told stated, level string, slots int, most *int) *views {
	v := &views{net: n, level: level, slots: slots, index: map[view]int{}, caused: map[cause][]uint64{}}
	v.others = level != "alone" && (most == nil || *most > slots)
	names := map[string]bool{}
	v.system, v.message = n.spaceOf(told.System, nil, false, names), n.spaceOf(told.Message, told.Ghosts, true, names)
	for _, name := range told.Ghosts {
		at := 0
		for at < len(v.system.parts) && v.system.parts[at].name != name {
			at++
		}
		if at == len(v.system.parts) {
			refute("it keeps a ghost of %s, and not %s itself", name, name)
		}
		one := kept{n.ghosts[name], at, true}
		for _, covering := range told.Covering {
			one.exact = one.exact && covering != name
		}
		v.ghosts = append(v.ghosts, one)
	}
	if len(told.Views) != 1+slots {
		doNotUnderstand("it has views that are no views of the level %s", level)
	}
	sum, given := view{}, []int{v.system.given, v.message.given, v.message.given}
	for number := 0; number < told.many(); number++ {
		for at, list := range told.Views {
			if len(list) != told.many() {
				doNotUnderstand("it has halves of views")
			}
			if sum[at] += list[number]; sum[at] < 0 || sum[at] >= given[at] {
				doNotUnderstand("it has a view of a state that it does not describe")
			}
		}
		v.index[sum] = len(v.list)
		v.list = append(v.list, sum)
	}
	if len(v.index) != len(v.list) {
		refute("it has the same view twice")
	}
	unseen := n.refusedBy(func(m *machine) bool { return !names[m.name] && !m.watches })
	v.awaited = setOf(len(n.events), func(e int) bool { return n.events[e].awaited && !unseen[e] })
	v.places = [][]int{{ofSystem}, {own}}
	if slots == 2 {
		v.places = [][]int{{ofSystem, ofSystem}, {own, earlier}, {later, own}}
	}
	return v
}

// spaceOf has the states of machines of the system or of a message, the last of which are ghosts; it adds the machines to the names.
func (n *net) spaceOf(columns []column, ghosts []string, ofMessage bool, names map[string]bool) *space {
	s := &space{index: map[string]int{}, known: map[on]*reply{}, events: n.events}
	rows := []string{""}
	for at, column := range columns {
		part := n.keeps(column.Machine, ofMessage)
		if ghost := at - (len(columns) - len(ghosts)); ghost >= 0 {
			if part = nil; n.ghosts[column.Machine] != nil && column.Machine == ghosts[ghost] {
				part = n.ghosts[column.Machine].part
			}
		}
		if part == nil || names[part.name] {
			refute("it keeps %s, or a ghost of it, which is not there, or twice", column.Machine)
		}
		names[part.name] = true
		if at == 0 {
			rows = make([]string, len(column.In))
		}
		if len(column.In) != len(rows) {
			doNotUnderstand("it has states that are not described")
		}
		for row, state := range column.In {
			if state < 0 || state >= len(column.States) {
				doNotUnderstand("it has states that are not described")
			}
			rows[row] += string([]byte{byte(part.state(column.States[state]))})
		}
		s.parts = append(s.parts, part)
	}
	for _, row := range rows {
		s.number(row)
	}
	if s.given = len(rows); len(s.states) != s.given {
		refute("it describes the same state twice")
	}
	return s
}

// keeps is the machine of a name that views may keep: one of the system, also if it watches, or one of a message.
func (n *net) keeps(name string, ofMessage bool) *machine {
	for _, each := range n.machines {
		if each.name == name && each.ofMessage == ofMessage && !(each.watches && ofMessage) {
			return each
		}
	}
	return nil
}

// refusedBy has the events that one of the machines left out refuses in a state that it can come to (lemma 6): by events that each
// machine accepts in some state that it has come to.
func (n *net) refusedBy(leftOut func(*machine) bool) map[int]bool {
	come := map[*machine]map[int]bool{}
	for _, m := range n.machines {
		come[m] = map[int]bool{m.initial: true}
	}
	accepts := func(m *machine, at on) bool {
		moves, hears := m.moves[at]
		for state := range come[m] {
			if hears && len(moves[state]) > 0 {
				return true
			}
		}
		return !hears
	}
	for grown := true; grown; {
		grown = false
		for e, event := range n.events {
			happens, role := true, ofSystem
			if event.ofMessage {
				role = own
			}
			for _, m := range n.machines {
				happens = happens && (m.watches || accepts(m, on{role, e}))
			}
			for _, m := range n.machines {
				for role := range roles {
					if moves, hears := m.moves[on{role, e}]; hears && happens && !m.watches {
						for state := range moves {
							for _, to := range moves[state] {
								if come[m][state] && !come[m][to] {
									come[m][to], grown = true, true
								}
							}
						}
					}
				}
			}
		}
	}
	found := map[int]bool{}
	for _, m := range n.machines {
		for at, moves := range m.moves {
			for state := range come[m] {
				if leftOut(m) && len(moves[state]) == 0 {
					found[at.event] = true
				}
			}
		}
	}
	return found
}

func (v *views) highest(counter, system int) int {
	part := v.system.parts[counter]
	if most := part.highest[v.system.states[system][counter]]; most != nil {
		return *most
	}
	return 1 << 30
}

// counts has what the ghosts of a message have counted.
func (v *views) counts(message int) string {
	state := v.message.states[message]
	return state[len(state)-len(v.ghosts):]
}

func (v *views) enabled(system int) set {
	return or(v.system.reply(system, ofSystem).accepts, v.system.reply(system, own).accepts)
}

func (v *views) owned(system, message int) set {
	return and(v.system.reply(system, own).accepts, v.message.reply(message, own).accepts)
}

// checkGhosts sees that the premise of lemma 0 holds in all views, for each ghost that is exact.
func (v *views) checkGhosts() {
	for at, ghost := range v.ghosts {
		for _, one := range v.list {
			for slot := 0; slot < v.slots && ghost.exact; slot++ {
				message := one[1+slot]
				count := v.counts(message)[at]
				falls := count == 0 && v.highest(ghost.counter, one[0]) != 0 && and(v.owned(one[0], message), ghost.down).Sign() != 0
				if count == lost || falls {
					refute("the %s does not tell what its message has counted", ghost.part.name)
				}
			}
		}
	}
}

// isReal tells whether no counter is below what the messages have counted (lemma 0).
func (v *views) isReal(one view) bool {
	for at, ghost := range v.ghosts {
		sum := 0
		for slot := 0; slot < v.slots; slot++ {
			if count := v.counts(one[1+slot])[at]; count != lost {
				sum += int(count)
			}
		}
		if ghost.exact && sum > v.highest(ghost.counter, one[0]) {
			return false
		}
	}
	return true
}

// allowed has for a view and a place what a message that the view does not hold may do there, by the level.
func (v *views) allowed() func(one view, place []int) set {
	switch v.level {
	case "alone", "chaos":
		every := setOf(len(v.net.events), func(int) bool { return true })
		return func(view, []int) set { return every }
	case "related":
		return v.relation.allowed
	case "relation":
		beside := map[[3]int]set{}
		for _, one := range v.list {
			before, behind := [3]int{one[0], one[1], later}, [3]int{one[0], one[2], earlier}
			beside[before] = or(orNone(beside[before]), v.owned(one[0], one[2]))
			beside[behind] = or(orNone(beside[behind]), v.owned(one[0], one[1]))
		}
		return func(one view, place []int) set {
			return and(orNone(beside[[3]int{one[0], one[1], place[0]}]), orNone(beside[[3]int{one[0], one[2], place[1]}]))
		}
	}
	doNotUnderstand("the level %q", v.level)
	return nil
}

func orNone(known set) set {
	if known == nil {
		return new(big.Int)
	}
	return known
}

// close sees that the first view is there, and that each step of a view leads to one that is there, or is none; it keeps the steps that
// move something, or that something hears which watches.
func (v *views) close(hears func(place []int) set) {
	first := view{v.system.initial(), v.message.initial(), 0}
	if v.slots == 2 {
		first[2] = first[1]
	}
	if _, ok := v.index[first]; !ok {
		refute("the first view, with every machine in its first state, is not among its views")
	}
	v.checkGhosts()
	held, places := len(v.places), v.places
	if v.others && v.slots == 1 {
		places = append(places, []int{earlier}, []int{later})
	} else if v.others {
		places = append(places, []int{earlier, earlier}, []int{later, earlier}, []int{later, later})
	}
	allowed := v.allowed()
	known := map[[2]int]int{}
	heard := []set{}
	for _, place := range places {
		heard = append(heard, hears(place))
	}
	v.first = []int{0}
	for number, one := range v.list {
		for at, place := range places {
			system := v.system.reply(one[0], roleOfSystem(place))
			possible, moving := system.accepts, or(system.changes, heard[at])
			var replies [2]*reply
			for slot, role := range place {
				replies[slot] = v.message.reply(one[1+slot], role)
				possible, moving = and(possible, replies[slot].accepts), or(moving, replies[slot].changes)
			}
			if at >= held {
				possible = and(possible, allowed(one, place))
			}
			each(and(possible, moving), func(e int) {
				after := one
				for slot := range place {
					if to := replies[slot].to[e]; to != nil {
						after[1+slot] = to[0]
					}
				}
				ends := system.to[e]
				if ends == nil {
					ends = one[:1]
				}
				if _, ok := known[[2]int{e, at}]; !ok {
					known[[2]int{e, at}] = len(v.kinds)
					v.kinds = append(v.kinds, kind{e, place})
				}
				for _, after[0] = range ends {
					to, there := v.index[after]
					if there {
						v.to, v.kind = append(v.to, int32(to)), append(v.kind, uint16(known[[2]int{e, at}]))
					} else if v.isReal(after) && v.isMet(after) {
						refute("%s (%s) leads from view %d to one that is not among them", v.net.events[e].name, said(place), number+1)
					}
				}
			})
		}
		v.first = append(v.first, len(v.to))
	}
}

// roleOfSystem is what an event is to the machines of the system.
func roleOfSystem(place []int) int {
	if place[0] == ofSystem {
		return ofSystem
	}
	return own
}

func said(place []int) string {
	names := []string{}
	for _, role := range place {
		names = append(names, roles[role])
	}
	return "to its messages: " + strings.Join(names, ", ")
}

func (v *views) isMet(one view) bool {
	for slot := 0; slot < v.slots; slot++ {
		if v.met != nil && !v.met(v.system.states[one[0]], v.message.states[one[1+slot]]) {
			return false
		}
	}
	return true
}

// A relation has the pairs that tell which messages may be beside which (lemma 7).  The class of a message is what it is in the pairs.
type relation struct {
	of       *views
	pairs    *views
	system   map[int]int
	classes  map[int]int
	halves   map[[3]int][]int // the pairs with a class in a slot, for a state of the system in the pairs
	besides  map[[3]int]set   // the classes beside one in this slot of a pair, for a state of the system in the pairs
	owners   map[int]map[int]set
	allowing map[[3]int]set
}

func relationOf(of *views, told stated, most *int) *relation {
	r := &relation{of, viewsOf(of.net, told, "relation", 2, most), map[int]int{}, map[int]int{}, map[[3]int][]int{}, map[[3]int]set{}, map[int]map[int]set{}, map[[3]int]set{}}
	halves := map[[2]string]bool{}
	class := func(s *space, state string) int {
		if number, ok := s.index[state]; ok && number < s.given {
			return number
		}
		return -1
	}
	for _, one := range of.list {
		system, message := of.system.as(of.system.states[one[0]], r.pairs.system), of.message.as(of.message.states[one[1]], r.pairs.message)
		halves[[2]string{system, message}] = true
		r.system[one[0]], r.classes[one[1]] = class(r.pairs.system, system), class(r.pairs.message, message)
	}
	r.pairs.met = func(system, message string) bool { return halves[[2]string{system, message}] }
	for number, one := range r.pairs.list {
		for slot := range []int{0, 1} {
			half := [3]int{one[0], one[1+slot], slot}
			r.halves[half] = append(r.halves[half], number)
		}
		first, second := [3]int{one[0], one[1], 0}, [3]int{one[0], one[2], 1}
		r.besides[first], r.besides[second] = or(orNone(r.besides[first]), bit(one[2])), or(orNone(r.besides[second]), bit(one[1]))
	}
	for _, one := range of.list {
		if r.owners[one[0]] == nil {
			r.owners[one[0]] = map[int]set{}
		}
		if mine := r.classes[one[1]]; mine >= 0 {
			each(of.owned(one[0], one[1]), func(e int) {
				r.owners[one[0]][e] = or(orNone(r.owners[one[0]][e]), bit(mine))
			})
		}
	}
	return r
}

// beside has the classes of what may be beside a message of a class, which is in this slot of a pair.
func (r *relation) beside(system, class, slot int) set {
	return orNone(r.besides[[3]int{r.system[system], class, slot}])
}

func (r *relation) allowed(one view, place []int) set {
	key := [3]int{one[0], r.classes[one[1]], place[0]}
	if r.allowing[key] == nil {
		slot := 0
		if place[0] == earlier {
			slot = 1
		}
		beside := r.beside(one[0], key[1], slot)
		r.allowing[key] = setOf(len(r.of.net.events), func(e int) bool { return and(orNone(r.owners[one[0]][e]), beside).Sign() != 0 })
	}
	return r.allowing[key]
}
