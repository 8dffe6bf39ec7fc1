/* One host: the table of its life, what becomes of one that misbehaves, and being attached anew. */
#include <poll.h>
#include <sys/socket.h>

#include "core/running/host.h"
#include "core/running/program.h"
#include "core/running/warden.h"
#include "tests/unit/jobs.h"

static void every_event_in_every_state_of_a_host_is_sound(void **state)
{
	(void)state;
	for (int from = 0; from < HOST_STATES; from++) {
		for (int event = 0; event < HOST_EVENTS; event++) {
			int next = (int)host_step((enum host_state)from, (enum host_event)event);
			if (event == HOST_ON_EXIT)
				assert_int_equal(next, HOST_GONE);
			/* Nothing comes back from its end, and nobody is busy who was not given a call. */
			if (from >= HOST_ENDING)
				assert_true(next >= from);
			if (next == HOST_BUSY && from != HOST_BUSY)
				assert_int_equal(event, HOST_ON_GIVE);
			if (next == HOST_SETTLING && from != HOST_SETTLING)
				assert_true(from == HOST_BUSY && event == HOST_ON_ANSWER);
		}
	}
}

/* ---- hosts that are small scripts: what pegfs makes of them */

struct watched {
	struct loop *loop;
	struct host *host;
	unsigned messages, idles;
	bool is_gone;
	struct buf end;
};

static void on_message(void *arg, const struct wire_message *message)
{
	struct watched *watched = arg;
	(void)message;
	watched->messages++;
}

static void on_host_output(void *arg, const char *bytes, size_t len)
{
	(void)arg, (void)bytes, (void)len;
}

static void on_idle(void *arg)
{
	struct watched *watched = arg;
	watched->idles++;
}

static void on_gone(void *arg)
{
	struct watched *watched = arg;
	watched->is_gone = true;
	host_describe_end(watched->host, &watched->end);
	loop_stop(watched->loop, 0);
}

static const struct host_events host_events = { .on_message = on_message,
	.on_output = on_host_output,
	.on_idle = on_idle,
	.on_gone = on_gone };

static const char *warden(void)
{
	static char path[4096];
	snprintf(path, sizeof(path), "%s/host/warden/warden", getenv("PEGFS_LIB_DIR"));
	return path;
}

static const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", NULL };

/* Python that says what a host says; KEY is read from the attach message. */
#define FAKE                                                                                             \
	"import json,os,socket,sys,time\n"                                                               \
	"s=socket.socket(fileno=3); f=s.makefile('rb'); n=0\n"                                           \
	"def get():\n"                                                                                   \
	"  while True:\n"                                                                                \
	"    m=json.loads(f.readline().strip() or b'{}')\n"                                              \
	"    if m.get('type') not in (None,'ack'): return m\n"                                           \
	"def say(**m):\n"                                                                                \
	"  global n; n+=1\n"                                                                             \
	"  s.sendall(('\\n'+json.dumps({'key':key,'seq':n,**m},separators=(',',':'))+'\\n').encode())\n" \
	"key=get()['key']\n"

/* Runs a script as a host, gives it a call, and waits for its end. */
static void run_fake(struct watched *watched, const char *script)
{
	struct fail why = FAIL_INIT;
	struct identity self;
	identity_self(&self);
	*watched = (struct watched){ .loop = loop_new(&why) };
	buf_init(&watched->end, 100000);
	auto_free char *text = xasprintf("%s%s", FAKE, script);
	const char *argv[] = { "/usr/bin/python3", "-c", text, NULL };
	auto_json json_t *settings = json_object();
	struct host_setup setup = { .loop = watched->loop,
		.events = &host_events,
		.arg = watched,
		.spawn = { .argv = argv, .env = env, .warden = warden(), .who = &self },
		.settings = settings,
		.message_max = 1000,
		.output_max = 1000,
		.grace_ms = 300 };
	watched->host = host_start(&setup, &why);
	assert_non_null(watched->host);
	auto_json json_t *secrets = json_array();
	struct wire_call order = { .id = "a",
		.name = "n",
		.dir = "/d",
		.entry = "e",
		.secrets = secrets,
		.params = "{}" };
	assert_int_equal(host_give(watched->host, &order), 0);
	assert_int_equal(host_get_state(watched->host), HOST_BUSY);
	assert_int_equal(loop_run(watched->loop), 0);
	assert_int_equal(host_get_state(watched->host), HOST_GONE);
}

static void free_fake(struct watched *watched)
{
	host_free(watched->host);
	loop_free(watched->loop);
	buf_release(&watched->end);
}

static void assert_fake(const char *script, unsigned messages, const char *end)
{
	struct watched watched;
	run_fake(&watched, script);
	assert_contains(buf_str(&watched.end), end);
	assert_int_equal(watched.messages, messages);
	free_fake(&watched);
}

static void a_host_that_breaks_the_protocol_is_stopped(void **state)
{
	(void)state;
	assert_fake("say(type='started',id='a'); s.sendall(('{\"key\":\"'+key+'\",'"
		    "+'x'*200000).encode()); time.sleep(60)",
		1, "stopped: the answer is larger than");
	assert_fake("s.sendall(('{\"key\":\"'+key+'\",nonsense\\n').encode()); time.sleep(60)", 0,
		"stopped: the answer cannot be read");
	assert_fake("say(type='strange'); time.sleep(60)", 0, "unknown type");
}

static void t12_what_is_not_the_hosts_is_passed_over(void **state)
{
	(void)state;
	assert_fake("s.sendall(b'junk'*50000+b'\\n{}\\n'); say(type='started',id='a'); os._exit(3)",
		1, "ended with exit status 3 before it answered");
}

static void the_last_words_of_a_host_are_heard(void **state)
{
	(void)state;
	assert_fake("say(type='started',id='a'); say(type='failed',id='a',kind='x',text='t'); "
		    "print('bye', flush=True); os.kill(os.getpid(), 9)",
		2, "signal 9");
	assert_fake("print('no such module', flush=True); sys.exit(1)", 0,
		"exit status 1 before it answered\nThe end of what it printed:\nno such module");
}

static void a_host_that_does_not_come_to_rest_is_killed(void **state)
{
	(void)state;
	struct watched watched;
	run_fake(&watched, "say(type='result',id='a',value=1); time.sleep(60)");
	assert_int_equal(watched.idles, 0);
	free_fake(&watched);
}

static void a_host_with_something_left_in_it_is_dismissed(void **state)
{
	(void)state;
	struct watched watched;
	run_fake(&watched,
		"say(type='result',id='a',value=1); say(type='idle',id='a',clean=False); "
		"get(); assert get()['type']=='exit'; sys.exit(0)");
	assert_int_equal(watched.idles, 0);
	free_fake(&watched);
	run_fake(&watched,
		"say(type='result',id='a',value=1); say(type='idle',id='a',clean=False); "
		"time.sleep(60)");
	free_fake(&watched);
}

/* ---- the real hosts, attached by one server after the other */

static void say(const struct spawn_child *child, const char *text)
{
	assert_int_equal(send(child->socket_fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The next line that is not empty, the caller's; NULL where none comes for a while. */
static char *read_line(const struct spawn_child *child, struct buf *bytes, int wait_ms)
{
	for (;;) {
		const char *end = memchr(buf_str(bytes), '\n', bytes->len);
		if (end) {
			size_t len = (size_t)(end - bytes->data);
			char *line = xstrndup(bytes->data, len);
			buf_consume(bytes, len + 1);
			if (len > 0)
				return line;
			free(line);
			continue;
		}
		struct pollfd ready = { .fd = child->socket_fd, .events = POLLIN };
		if (poll(&ready, 1, wait_ms) <= 0)
			return NULL;
		char part[4096];
		ssize_t got = read(child->socket_fd, part, sizeof(part));
		assert_true(got > 0);
		buf_append(bytes, part, (size_t)got);
	}
}

static void assert_line(const struct spawn_child *child, struct buf *bytes, const char *key,
	int seq, const char *type)
{
	auto_free char *line = read_line(child, bytes, 10000);
	auto_free char *start =
		xasprintf("{\"key\":\"%s\",\"seq\":%d,\"type\":\"%s\"", key, seq, type);
	assert_non_null(line);
	assert_int_equal(strncmp(line, start, strlen(start)), 0);
}

static void attach_twice(
	const char *program, const char *script, const char *tool, const char *entry)
{
	auto_free char *path = xasprintf("%s/host/%s", getenv("PEGFS_LIB_DIR"), script);
	struct fail why = FAIL_INIT;
	auto_free char *found = program_find(program, env, &why);
	const char *argv[] = { found, path, NULL };
	struct identity self;
	identity_self(&self);
	struct spawn_request request = {
		.argv = argv, .env = env, .warden = warden(), .who = &self
	};
	struct spawn_child child;
	assert_int_equal(spawn_child(&request, &child, &why), 0);
	auto_buf struct buf bytes = BUF_INIT(100000);

	say(&child, "\n{\"type\":\"attach\",\"key\":\"first\",\"acked\":0}\n");
	assert_line(&child, &bytes, "first", 1, "ready");
	auto_free char *order =
		xasprintf("\n{\"type\":\"call\",\"id\":\"a\",\"name\":\"n\",\"dir\":"
			  "\"%s/%s\",\"entry\":\"%s\",\"secrets\":[],\"params\":"
			  "{\"name\":\"Ann\"}}\n",
			fixtures(), tool, entry);
	say(&child, order);
	assert_line(&child, &bytes, "first", 2, "started");
	assert_line(&child, &bytes, "first", 3, "result");
	assert_line(&child, &bytes, "first", 4, "idle");
	/* That server dies in the middle of a line. */
	say(&child, "\n{\"type\":\"ca");
	say(&child, "\n{\"type\":\"attach\",\"key\":\"second\",\"acked\":2}\n");
	assert_line(&child, &bytes, "second", 3, "result");
	assert_line(&child, &bytes, "second", 4, "idle");
	say(&child, "\n{\"type\":\"ack\",\"seq\":4}\n");
	say(&child, "\n{\"type\":\"attach\",\"key\":\"third\",\"acked\":4}\n");
	assert_null(read_line(&child, &bytes, 100));
	say(&child, order);
	assert_line(&child, &bytes, "third", 5, "started");
	close(child.control_fd);
	assert_int_equal(waitpid(child.warden_pid, NULL, 0), child.warden_pid);
	close(child.socket_fd);
	close(child.output_fd);
}

static void a_host_repeats_to_a_new_server_what_was_not_acknowledged(void **state)
{
	(void)state;
	attach_twice("node", "node/host.mjs", "hello", "index.ts");
	attach_twice("python3", "python/host.py", "py_hello", "index.py");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_in_every_state_of_a_host_is_sound),
		cmocka_unit_test(a_host_that_breaks_the_protocol_is_stopped),
		cmocka_unit_test(t12_what_is_not_the_hosts_is_passed_over),
		cmocka_unit_test(the_last_words_of_a_host_are_heard),
		cmocka_unit_test(a_host_that_does_not_come_to_rest_is_killed),
		cmocka_unit_test(a_host_with_something_left_in_it_is_dismissed),
		cmocka_unit_test(a_host_repeats_to_a_new_server_what_was_not_acknowledged),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
