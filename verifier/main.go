// Command verifier checks a certificate of ackfsm from its network written out as data.  It reads no tables, and shares
// no code with the search that made the certificate, nor with the verifier in Python.  Words and lemmas are those of spec/any.md.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
)

// A header is the first line of a certificate.
type header struct {
	Format                   string
	Version                  int
	Ackfsm, Tables, Network  string
	Config                   map[string]any
	Faults, Actions, Without []string
	Proved                   []string
	Possible                 []map[string]any  // runs, which this program does not perform
	NotCovered               map[string]string `json:"not_covered"`
	Payload                  struct {
		Bytes  int
		Sha256 string
	}
}

// An invariant is said to hold all views of the systems of Least to Most messages (nil: any more).
type invariant struct {
	Level string
	Least int
	Most  *int
	shown
	Followed []shown
}

// What is shown are the Watchers that are never marked beside the views.
type shown struct {
	Watchers []struct{ Anomaly, Machine string }
	stated
	Relation *stated
}

// Views are stated as a list for the system and one for each message, of numbers less the one before.
type stated struct {
	Ghosts, Covering []string
	System, Message  []column
	Views            [][]int
}

// A column has a machine, those of its states that occur, and for each number which of them it is in.
type column struct {
	Machine string
	States  []string
	In      []int
}

// A network has the system of each family: of Least to Most messages.
type network struct {
	Format   string
	Version  int
	Families []family
}

type family struct {
	Least    int
	Most     *int
	Machines []struct {
		Machine, Of string
		Watches     bool
		States      []string
		Initial     string
		Highest     []*int
	}
	Events []struct {
		Event, Of    string
		Awaited      bool
		Participants []struct {
			Machine, Role string
			Moves         map[string][]string
		}
	}
	Counters []counter
	Watchers []struct {
		Anomaly, Machine string
		Marked           []string
		AtRest           []string `json:"at_rest"`
		Counts           *counter
	}
}

// A counter is one of the system, with what its own events do to it.
type counter struct {
	Machine         string
	Bound           int
	Refuses         bool
	Up, Down, Reset []string
}

// A failure ends the check of an invariant or an anomaly: what is refuted is not so (exit 1), the rest is not understood (exit 2).
type failure struct {
	refuted bool
	why     string
}

func refute(format string, of ...any)          { panic(failure{true, fmt.Sprintf(format, of...)}) }
func doNotUnderstand(format string, of ...any) { panic(failure{false, fmt.Sprintf(format, of...)}) }

// try runs a check and returns the failure that ended it, if one did.
func try(check func()) (failed *failure) {
	defer func() {
		if found := recover(); found != nil {
			known, ok := found.(failure)
			if !ok {
				panic(found)
			}
			failed = &known
		}
	}()
	check()
	return nil
}

// decode reads one JSON value that has no other fields than those of what it is read into.
func decode(data []byte, into any, what string) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		doNotUnderstand("%s: %v", what, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		doNotUnderstand("%s: something follows it", what)
	}
}

func read(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		doNotUnderstand("%v", err)
	}
	return data
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func readCertificate(path string) (told header, invariants []invariant) {
	line, payload, _ := bytes.Cut(read(path), []byte("\n"))
	decode(line, &told, "the header")
	if told.Format != "ackfsm certificate" || told.Version != 5 {
		doNotUnderstand("it is no ackfsm certificate of version 5")
	}
	if len(payload) != told.Payload.Bytes || digest(payload) != told.Payload.Sha256 {
		doNotUnderstand("what is behind the first line was cut or changed, as its SHA-256 is another one")
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		doNotUnderstand("the payload: %v", err)
	}
	body, err := io.ReadAll(unpacked)
	if err != nil {
		doNotUnderstand("the payload: %v", err)
	}
	var found struct{ Invariants []invariant }
	decode(body, &found, "the payload")
	return told, found.Invariants
}

func readNetwork(path, sha256 string) []*net {
	data := read(path)
	if digest(data) != sha256 {
		doNotUnderstand("the network is not the one that the certificate is about, as its SHA-256 is another one")
	}
	var told network
	decode(data, &told, "the network")
	if told.Format != "ackfsm network" || told.Version != 1 || len(told.Families) == 0 {
		doNotUnderstand("it is no ackfsm network of version 1 with a family")
	}
	var nets []*net
	next := 1
	for _, each := range told.Families {
		if each.Least != next || next == 0 {
			doNotUnderstand("the families of the network do not follow each other")
		}
		if next = 0; each.Most != nil {
			next = *each.Most + 1
		}
		nets = append(nets, netOf(each))
	}
	if next != 0 {
		doNotUnderstand("the families of the network are not for every number of messages")
	}
	return nets
}

func (told stated) many() int {
	if len(told.Views) == 0 {
		return 0
	}
	return len(told.Views[0])
}

func (i invariant) name() string {
	if i.Most == nil {
		return fmt.Sprintf("%s, %d messages or more, %d views", i.Level, i.Least, i.many())
	}
	return fmt.Sprintf("%s, %d to %d messages, %d views", i.Level, i.Least, *i.Most, i.many())
}

// An answer is what is known of one machine that watches, for the numbers of messages of an invariant.
type answer struct {
	of     invariant
	failed *failure
}

type watching struct{ anomaly, machine string }

// verify looks through a certificate, prints what it finds, and returns the exit code.
func verify(certificate, network string) int {
	told, invariants := readCertificate(certificate)
	nets := readNetwork(network, told.Network)
	answers := map[watching][]answer{}
	code := 0
	failing := func(why *failure) string {
		if why == nil {
			return "shown"
		}
		if why.refuted {
			code = 1
			return "REFUTED: " + why.why
		}
		if code == 0 {
			code = 2
		}
		return "NOT UNDERSTOOD: " + why.why
	}
	for number, each := range invariants {
		found := map[watching]*failure{}
		failed := try(func() { found = checkInvariant(each, nets) })
		fmt.Printf("invariant %d: %s: %s\n", number+1, each.name(), failing(failed))
		for _, watchers := range append([]shown{each.shown}, each.Followed...) {
			for _, one := range watchers.Watchers {
				name := watching{one.Anomaly, one.Machine}
				why := failed
				if why == nil {
					why = found[name]
					fmt.Printf("  %s (%s): %s\n", one.Anomaly, one.Machine, failing(why))
				}
				answers[name] = append(answers[name], answer{each, why})
			}
		}
	}
	for _, name := range told.Proved {
		failed := try(func() { covered(name, nets, answers) })
		fmt.Printf("%s: %s\n", name, failing(failed))
	}
	if len(told.Possible) > 0 {
		fmt.Printf("not looked at: %d runs that are said to be possible\n", len(told.Possible))
	}
	if len(told.Proved) == 0 && code == 0 {
		fmt.Println("nothing is said to be proved")
		code = 2
	}
	return code
}

// covered sees that each machine that watches for an anomaly is never marked, for any number of messages.
func covered(anomaly string, nets []*net, answers map[watching][]answer) {
	var watchers []watcher
	for _, of := range nets {
		watchers = append(watchers, of.watchers...)
	}
	some := false
	for _, each := range watchers {
		if each.anomaly != anomaly {
			continue
		}
		some = true
		known := answers[watching{anomaly, each.part.name}]
		sort.SliceStable(known, func(i, j int) bool { return known[i].of.Least < known[j].of.Least })
		next := 1
		for _, one := range known {
			if one.failed != nil {
				panic(*one.failed)
			}
			if next > 0 && one.of.Least <= next {
				if one.of.Most == nil {
					next = 0
				} else if *one.of.Most >= next {
					next = *one.of.Most + 1
				}
			}
		}
		if next > 0 {
			refute("no invariant is for %s and %d messages", each.part.name, next)
		}
	}
	if !some {
		refute("nothing watches for it")
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "verifier CERTIFICATE NETWORK (which `ackfsm certificate network CERTIFICATE` prints)")
		os.Exit(2)
	}
	code := 2
	if failed := try(func() { code = verify(os.Args[1], os.Args[2]) }); failed != nil {
		fmt.Println("NOT UNDERSTOOD: " + failed.why)
	}
	if code == 0 {
		fmt.Println("verified")
	}
	os.Exit(code)
}
