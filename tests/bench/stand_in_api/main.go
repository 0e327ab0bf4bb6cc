// SPDX-License-Identifier: Apache-2.0

// Stand_in_api is an API server that has all objects in memory, and answers at once: what a controller does before it is the
// controller's own time. It knows lists in pages, watches, POST, PUT, merge patches, server-side apply as a merge, the
// subresource status, resourceVersions, finalizers and preconditions. It checks no schema, and selects nothing: all objects are
// those of one driver.
//
// usage: stand_in_api CERT KEY PORT-FILE NODES
//
// NODES nodes called sim-0 and so on have the label of the driver. GET /counts answers with how often each verb was used on each
// resource since /counts?reset, and how many objects there are.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
)

const driver = "pmem-csi.intel.com"

type object = map[string]any

// An event of a watch, as it is sent, whole and with metadata alone.
type event struct {
	version int
	line    []byte
	partial []byte
}

type collection struct {
	objects map[string]object // by namespace/name
	events  []event
	changed chan struct{} // closed and replaced by each event
}

type server struct {
	mutex       sync.Mutex
	collections map[string]*collection
	counts      map[string]int
	version     int
	pages       map[string][][]byte // what is left of a list, by token
}

// What a request is about.
type target struct {
	resource  string
	namespace string
	name      string
	status    bool
}

func (s *server) collection(resource string) *collection {
	c := s.collections[resource]
	if c == nil {
		c = &collection{objects: map[string]object{}, changed: make(chan struct{})}
		s.collections[resource] = c
	}
	return c
}

func parse(path string) target {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2 // api/v1
	if parts[0] == "apis" {
		skip = 3
	}
	parts = parts[min(skip, len(parts)):]
	t := target{}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		t.namespace = parts[1]
		parts = parts[2:]
	}
	if len(parts) > 0 {
		t.resource = parts[0]
	}
	if len(parts) > 1 {
		t.name = parts[1]
	}
	t.status = len(parts) > 2 && parts[2] == "status"
	return t
}

func meta(o object) object {
	m, _ := o["metadata"].(object)
	return m
}

func text(m object, key string) string {
	s, _ := m[key].(string)
	return s
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		log.Fatal(err)
	}
	return data
}

func partial(o object) object {
	return object{"metadata": o["metadata"]}
}

// record gives the object another version and shows it to the watches.
func (s *server) record(c *collection, key, what string, o object) {
	s.version++
	meta(o)["resourceVersion"] = strconv.Itoa(s.version)
	if what == "DELETED" {
		delete(c.objects, key)
	} else {
		c.objects[key] = o
	}
	c.events = append(c.events, event{s.version, append(encode(object{"type": what, "object": o}), '\n'),
		append(encode(object{"type": what, "object": partial(o)}), '\n')})
	close(c.changed)
	c.changed = make(chan struct{})
}

// merge is RFC 7396.
func merge(to, from object) object {
	merged := object{}
	for key, value := range to {
		merged[key] = value
	}
	for key, value := range from {
		child, isObject := value.(object)
		if value == nil {
			delete(merged, key)
		} else if isObject {
			old, _ := merged[key].(object)
			merged[key] = merge(old, child)
		} else {
			merged[key] = value
		}
	}
	return merged
}

func fail(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(encode(object{"kind": "Status", "status": "Failure", "message": reason, "reason": reason, "code": code}))
}

func answer(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(body)
}

func isPartial(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
}

// list answers with one page; what is left is kept for the next one.
func (s *server) list(w http.ResponseWriter, r *http.Request, t target) {
	c := s.collection(t.resource)
	items := s.pages[r.URL.Query().Get("continue")]
	delete(s.pages, r.URL.Query().Get("continue"))
	if items == nil {
		keys := make([]string, 0, len(c.objects))
		for key := range c.objects {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			o := c.objects[key]
			if isPartial(r) {
				o = partial(o)
			}
			items = append(items, encode(o))
		}
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	m := object{"resourceVersion": strconv.Itoa(s.version)}
	if limit > 0 && len(items) > limit {
		s.version++
		token := strconv.Itoa(s.version)
		s.pages[token] = items[limit:]
		items = items[:limit]
		m["continue"] = token
	}
	body := []byte(`{"metadata":`)
	body = append(append(body, encode(m)...), `,"items":[`...)
	for i, item := range items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, item...)
	}
	answer(w, http.StatusOK, append(body, "]}"...))
}

// watch sends what has happened since the version that it is given, until the client has gone.
func (s *server) watch(w http.ResponseWriter, r *http.Request, t target) {
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	s.mutex.Lock()
	c := s.collection(t.resource)
	next := sort.Search(len(c.events), func(i int) bool { return c.events[i].version > since })
	s.mutex.Unlock()
	for {
		s.mutex.Lock()
		events, changed := c.events[next:], c.changed
		s.mutex.Unlock()
		for _, e := range events {
			line := e.line
			if isPartial(r) {
				line = e.partial
			}
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		next += len(events)
		if len(events) > 0 {
			w.(http.Flusher).Flush()
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *server) create(w http.ResponseWriter, t target, o object) {
	c := s.collection(t.resource)
	m := meta(o)
	key := t.namespace + "/" + text(m, "name")
	if c.objects[key] != nil {
		fail(w, http.StatusConflict, "AlreadyExists")
		return
	}
	if t.resource == "pmemvolumes" {
		delete(o, "status")
	}
	m["uid"] = fmt.Sprintf("00000000-0000-0000-0000-%012d", s.version)
	s.record(c, key, "ADDED", o)
	answer(w, http.StatusCreated, encode(o))
}

// change replaces or merges, and removes an object whose last finalizer has gone.
func (s *server) change(w http.ResponseWriter, r *http.Request, t target, body object) {
	c := s.collection(t.resource)
	key := t.namespace + "/" + t.name
	old := c.objects[key]
	if old == nil && strings.Contains(r.Header.Get("Content-Type"), "apply") {
		s.create(w, t, body)
		return
	}
	if old == nil {
		fail(w, http.StatusNotFound, "NotFound")
		return
	}
	if version := text(meta(body), "resourceVersion"); version != "" && version != text(meta(old), "resourceVersion") {
		fail(w, http.StatusConflict, "Conflict")
		return
	}
	o := body
	if t.status {
		o = merge(old, object{"status": body["status"]})
	} else if r.Method == http.MethodPatch {
		delete(body, "status")
		o = merge(old, body)
	}
	finalizers, _ := meta(o)["finalizers"].([]any)
	if meta(o)["deletionTimestamp"] != nil && len(finalizers) == 0 {
		s.record(c, key, "DELETED", o)
	} else {
		s.record(c, key, "MODIFIED", o)
	}
	answer(w, http.StatusOK, encode(o))
}

func (s *server) remove(w http.ResponseWriter, t target, options object) {
	c := s.collection(t.resource)
	key := t.namespace + "/" + t.name
	o := c.objects[key]
	if o == nil {
		fail(w, http.StatusNotFound, "NotFound")
		return
	}
	preconditions, _ := options["preconditions"].(object)
	if version := text(preconditions, "resourceVersion"); version != "" && version != text(meta(o), "resourceVersion") {
		fail(w, http.StatusConflict, "Conflict")
		return
	}
	if finalizers, _ := meta(o)["finalizers"].([]any); len(finalizers) > 0 {
		o = merge(o, object{"metadata": object{"deletionTimestamp": "2026-01-01T00:00:00Z"}})
		s.record(c, key, "MODIFIED", o)
	} else {
		s.record(c, key, "DELETED", merge(o, object{"metadata": object{}}))
	}
	answer(w, http.StatusOK, encode(o))
}

func (s *server) get(w http.ResponseWriter, r *http.Request, t target) {
	o := s.collection(t.resource).objects[t.namespace+"/"+t.name]
	switch {
	case t.name == "":
		s.list(w, r, t)
	case o == nil:
		fail(w, http.StatusNotFound, "NotFound")
	default:
		answer(w, http.StatusOK, encode(o))
	}
}

func (s *server) answerCounts(w http.ResponseWriter, r *http.Request) {
	all := object{"requests": s.counts}
	for resource, c := range s.collections {
		all[resource] = len(c.objects)
	}
	if r.URL.Query().Has("reset") {
		s.counts = map[string]int{}
	}
	answer(w, http.StatusOK, encode(all))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := parse(r.URL.Path)
	var body object
	if data, err := io.ReadAll(r.Body); err == nil && len(data) > 0 {
		if err := json.Unmarshal(data, &body); err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r, t)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if r.URL.Path == "/counts" {
		s.answerCounts(w, r)
		return
	}
	if t.resource == "" {
		answer(w, http.StatusOK, []byte(`{"resources":[{"name":"pmemnodes"},{"name":"pmemvolumes"}]}`))
		return
	}
	what := r.Method + " " + t.resource
	if t.status {
		what += "/status"
	}
	s.counts[what]++
	switch r.Method {
	case http.MethodGet:
		s.get(w, r, t)
	case http.MethodPost:
		s.create(w, t, body)
	case http.MethodDelete:
		s.remove(w, t, body)
	default:
		s.change(w, r, t, body)
	}
}

func main() {
	nodes, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	s := &server{collections: map[string]*collection{}, counts: map[string]int{}, pages: map[string][][]byte{}, version: 1}
	for i := range nodes {
		name := fmt.Sprintf("sim-%d", i)
		s.record(s.collection("nodes"), "/"+name, "ADDED",
			object{"metadata": object{"name": name, "uid": name, "labels": object{driver + "/node": name}}})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if err := os.WriteFile(os.Args[3], []byte(port), 0o644); err != nil {
		log.Fatal(err)
	}
	web := &http.Server{Handler: s, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	log.Fatal(web.ServeTLS(listener, os.Args[1], os.Args[2]))
}
