import { OPEN_PARTS } from '../emulator/open-part.ts'
import {
  appAddress,
  duration,
  listenAddress,
  pointInTime,
  seqOrTime,
  toolAddress,
  wholeNumber,
} from './argument.ts'
import { option, type CommandSpec } from './command.ts'
import { onlyOne } from './once.ts'

/** The file that `init` writes. */
const CONFIG = option('-c, --config <file>', 'configuration, YAML or JSON', {
  default: { value: 'sidecar.yaml' },
})
const JSON_OUTPUT = option('--json', 'JSON, for programs')
const LIMIT = option('-n, --limit <number>', 'list at most this many', {
  parse: wholeNumber(1, 100_000),
  default: { value: 20 },
})
const DELIVERY = { flags: '<id>', text: 'id of the delivery' }
const HANDLER = { flags: '<handler>', text: 'name of the handler' }

/** Options of every command that talks to a running sidecar. */
const REMOTE = [
  option(
    '--url <url>',
    'admin address of the sidecar (or SIDECAR_ADMIN_URL; by default http://127.0.0.1:8481)',
  ),
  option('-c, --config <file>', 'configuration file from which to read the admin address and token'),
  option(
    '--token-file <file>',
    'file with the admin token (or SIDECAR_ADMIN_TOKEN, SIDECAR_ADMIN_TOKEN_FILE)',
  ),
  JSON_OUTPUT,
]

/** Where requests to the user's own app go. */
const FORWARDING = [
  option('--tool <name=url>', 'another address for the calls of one function; may be repeated', {
    parse: toolAddress,
  }),
  option('--events <types...>', 'the types of facts to forward, such as "turn.*"; by default all'),
  option(
    '--secret-file <file>',
    'file with the secret that signs the requests, created if it is missing; by default ~/.config/agent-session-sidecar/callback-secret.txt',
  ),
]
const FORWARD_TO = option(
  '--forward-to <url>',
  'address of your app: callbacks go to it, calls of a function NAME to /tools/NAME of the same host',
  { parse: appAddress },
)

/** The commands that start something. */
const RUNNING: readonly CommandSpec[] = [
  {
    name: 'dev',
    summary: 'run the emulator, a sidecar and an example app, or your own app',
    description:
      'Runs an emulator of the service, a sidecar and a small example app, with no account and no configuration, and prints each fact, callback and tool answer. With --forward-to, your own app takes the place of the example app.',
    options: [
      option(
        '--once',
        'end when all messages are done; exit 0 only if everything was delivered and answered',
      ),
      option(
        '--crash',
        'kill the sidecar in the middle of its work, and show what was stored and what is repeated',
        { conflicts: ['forwardTo', 'once', 'scenario'] },
      ),
      option('--scenario <file>', 'file with the sessions to play, instead of the built-in ones'),
      FORWARD_TO,
      ...FORWARDING,
      option(
        '--send <text>',
        'send this message to a new session, and keep running; with --once, end after it',
      ),
      option('--watch', 'play the scenario again when its file changes'),
      option('--json', 'for programs: one JSON line per event'),
    ],
    examples: [
      'session-sidecar dev',
      'session-sidecar dev --once',
      'session-sidecar dev --crash',
      'session-sidecar dev --forward-to http://localhost:3000/agent-events --send "call lookup_order {}"',
      'session-sidecar dev --forward-to localhost:3000 --tool lookup_order=localhost:4000/orders --once --send Hello',
      'session-sidecar dev --forward-to localhost:3000 --scenario orders.yaml --watch',
    ],
    load: async () => (await import('./dev.ts')).dev,
  },
  {
    name: 'listen',
    summary: 'forward events of the service to your app on this machine',
    description:
      'Follows the service from now on, and forwards callbacks and function calls to your own app, without a configuration file. Its store is in a temporary folder, which is removed at the end. All other keys are set by variables SIDECAR_…, as for run.',
    options: [
      option('--base-url <url>', 'address of the service; or SIDECAR_SERVICE__BASE_URL'),
      option(
        '--token-file <file>',
        'file with its access token; or SIDECAR_SERVICE__TOKEN, or SIDECAR_SERVICE__TOKEN_FILE',
      ),
      { ...FORWARD_TO, required: true },
      ...FORWARDING,
      option('--no-tools', 'answer no function calls: other programs answer them'),
      option('--json', 'for programs: one JSON line per event'),
    ],
    examples: [
      'session-sidecar listen --base-url https://agents.example.com --token-file token.txt --forward-to localhost:3000',
      'SIDECAR_SCOPE__METADATA=\'{"app":"billing"}\' session-sidecar listen …  # only these sessions',
    ],
    load: async () => (await import('./listen.ts')).listen,
  },
  {
    name: 'run',
    summary: 'run the sidecar; the command of the container',
    description:
      'Runs the sidecar until SIGTERM, SIGINT or SIGHUP, then finishes the work under way; a second signal ends it at once.',
    options: [CONFIG],
    examples: ['session-sidecar run -c sidecar.yaml'],
    load: async () => (await import('./run.ts')).run,
  },
  {
    name: 'emulate',
    summary: 'run only the emulator of the service',
    description: 'Runs the emulator of the Agent Session Service.',
    options: [
      option('--listen <host:port>', 'listen address; port 0 chooses a free one', {
        parse: listenAddress,
        default: { value: listenAddress('127.0.0.1:4010'), shown: '127.0.0.1:4010' },
      }),
      option(
        '--scenario <file>',
        'file with the steps of the agent; by default each line of a message is a step',
      ),
      option('--token <token>', 'access token that the emulator accepts', {
        default: { value: 'svc_pat_dev' },
      }),
      option('--open-details <profile>', 'choice for the details that the interface leaves open', {
        choices: ['a', 'b'],
        default: { value: 'a' },
      }),
      option('--leave-out <parts...>', 'parts to remove from the OpenAPI document', { choices: OPEN_PARTS }),
      option('--allow-http-webhooks', 'accept http addresses of webhooks on loopback'),
      option(
        '--allow-host <names...>',
        'more host names that the routes below /_emulator accept, beside IP addresses and names without a dot',
      ),
      option('--data <file>', 'file that keeps its state across restarts and kills'),
      option('--json', 'for programs: address and token as one line'),
    ],
    examples: ['session-sidecar emulate', 'session-sidecar emulate --listen 127.0.0.1:0 --open-details b'],
    load: async () => (await import('./emulate.ts')).emulate,
  },
]

/** The commands that check, print or copy. */
const CHECKING: readonly CommandSpec[] = [
  {
    name: 'check',
    summary: 'list problems of a configuration and how to fix them',
    description:
      'Checks the configuration, the token and its scopes, routes, clocks, the store, handlers and tools. Exit 1 if there is a problem.',
    options: [CONFIG, JSON_OUTPUT],
    examples: ['session-sidecar check -c sidecar.yaml'],
    load: async () => (await import('./check.ts')).check,
  },
  {
    name: 'conform',
    summary: 'list where a deployment of the service differs from its interface',
    description:
      'Tries the rules of the interface on a deployment, one by one, and prints which hold, which differ and which were not tried. Changes nothing without --write. Exit 1 if anything differs.',
    options: [
      option('--base-url <url>', 'address of the deployment (required)', { required: true }),
      option('--token-file <file>', 'access token of the service (required)', { required: true }),
      option('--write', 'also try rules that create resources: sessions and more, all removed at the end'),
      option('--only <rules>', 'only these rules, by prefix, id or range, for example SES,LIM-09,EVT-01..20'),
      option('--parallel <number>', 'number of checks that run at the same time', {
        parse: wholeNumber(1, 16),
        default: { value: 4 },
      }),
      option('--timeout <duration>', 'limit of the whole run; by default 10m', {
        parse: duration(1000, 86_400_000),
      }),
      option('--patience <duration>', 'limit of each wait for the agent; by default 60s', {
        parse: duration(100, 3_600_000),
      }),
      option('--webhook-url <url>', 'public address that leads to --webhook-listen, to receive webhooks'),
      option(
        '--webhook-listen <host:port>',
        'where webhooks arrive; by default 127.0.0.1:8480. A deployment on this machine needs neither option',
        { parse: listenAddress },
      ),
      option('--verbose', 'print a line for every rule, also for those that were not tried'),
      JSON_OUTPUT,
    ],
    load: async () => (await import('./conform.ts')).conform,
  },
  {
    name: 'config',
    summary: 'print the schema, or the effective configuration',
    description: 'Prints the schema of the configuration, or the effective configuration.',
    commands: [
      {
        name: 'schema',
        summary: 'Prints the JSON Schema (2020-12) of the configuration, for editors.',
        options: [option('--json', 'for programs: the output is always JSON')],
        load: async () => (await import('./config.ts')).schema,
      },
      {
        name: 'print',
        summary: 'Prints the effective configuration, secrets redacted.',
        options: [CONFIG, option('--json', 'for programs: JSON in place of YAML')],
        load: async () => (await import('./config.ts')).print,
      },
    ],
  },
  {
    name: 'store',
    summary: 'check the database, copy it, restore a copy, or move to another engine',
    description:
      'Checks or backs up the database of a sidecar, which may be running. Restores a backup, or moves to another engine, while none is running.',
    commands: [
      {
        name: 'check',
        summary:
          'Reads the whole database: its structure, and the checksum of every fact. Exit 1 on any fault.',
        options: [CONFIG, JSON_OUTPUT],
        examples: ['session-sidecar store check -c sidecar.yaml'],
        load: async () => (await import('./store.ts')).checkStore,
      },
      {
        name: 'backup',
        summary: 'Copies the database, and checks the copy.',
        arguments: [{ flags: '<file>', text: 'the file to create' }],
        options: [CONFIG, JSON_OUTPUT],
        examples: ['session-sidecar store backup sidecar-backup.db -c sidecar.yaml'],
        load: async () => (await import('./store.ts')).backup,
      },
      {
        name: 'restore',
        summary:
          'Replaces the database with a copy, after a check of the copy. The former database is kept beside it. No sidecar may use the store meanwhile.',
        arguments: [
          {
            flags: '<file>',
            text: 'the copy to restore, made by "store backup"; the file is kept',
          },
        ],
        options: [CONFIG, JSON_OUTPUT],
        examples: ['session-sidecar store restore sidecar-backup.db -c sidecar.yaml'],
        load: async () => (await import('./store.ts')).restore,
      },
      {
        name: 'copy',
        summary:
          'Copies the database from SQLite to PostgreSQL or back, and compares both at the end. No sidecar may use either meanwhile. If it is interrupted, the same command continues.',
        options: [
          option('--from <url>', 'the store to copy: sqlite:FILE, or postgres://… (required)', {
            required: true,
          }),
          option('--to <url>', 'the store to create: postgres://… or sqlite:FILE (required)', {
            required: true,
          }),
          option(
            '--password-file <file>',
            'file with the password of the database; by default that of PGPASSWORD or PGPASSFILE',
          ),
          JSON_OUTPUT,
        ],
        examples: [
          'session-sidecar store copy --from sqlite:data/sidecar.db --to "postgres://sidecar@db.example.com/sidecar?sslmode=verify-full"',
        ],
        load: async () => (await import('./copy.ts')).copy,
      },
    ],
  },
]

/** The commands that ask a running sidecar. */
const READING: readonly CommandSpec[] = [
  {
    name: 'status',
    summary: 'what needs attention, then channels, queues, handlers, session slots and the token',
    options: [
      option('-v, --verbose', 'also all results of discovery: routes and headers of the service'),
      ...REMOTE,
    ],
    examples: ['session-sidecar status', 'session-sidecar status --json'],
    load: async () => (await import('./status.ts')).status,
  },
  {
    name: 'events',
    summary: 'facts, the newest last',
    options: [
      option('-f, --follow', 'continue with new facts'),
      option('--type <type>', 'only this type'),
      option('--session <id>', 'only this session'),
      LIMIT,
      ...REMOTE,
    ],
    examples: ['session-sidecar events --follow', 'session-sidecar events --type turn.settled --json'],
    load: async () => (await import('./events.ts')).events,
  },
  {
    name: 'sessions',
    summary: 'sessions, as last read from the service',
    options: [
      option('--status <status>', 'only with this status; "deleted" lists the deleted ones'),
      LIMIT,
      ...REMOTE,
    ],
    examples: ['session-sidecar sessions --status requires_action'],
    load: async () => (await import('./lists.ts')).sessions,
  },
  {
    name: 'calls',
    summary: 'function calls and their outcomes',
    options: [
      option('--state <state>', 'only in this state', {
        choices: ['received', 'running', 'finished', 'answered', 'not_delivered', 'failed'],
      }),
      option('--session <id>', 'only of this session'),
      LIMIT,
      ...REMOTE,
    ],
    examples: ['session-sidecar calls --state running'],
    load: async () => (await import('./lists.ts')).calls,
  },
  {
    name: 'deliveries',
    summary: 'deliveries of facts to handlers: pending, delivered and dead',
    options: [
      option('--status <status>', 'only with this status', { choices: ['pending', 'delivered', 'dead'] }),
      option('--handler <name>', 'only of this handler'),
      option('--session <id>', 'only of this session'),
      LIMIT,
      ...REMOTE,
    ],
    examples: [
      'session-sidecar deliveries --status dead',
      'session-sidecar deliveries show dlv_1042_1',
      'session-sidecar deliveries retry --dead --handler app --dry-run',
    ],
    load: async () => (await import('./deliveries.ts')).deliveries,
    commands: [
      {
        name: 'show',
        summary: 'Shows one delivery: each attempt, and the last failed response of the handler.',
        arguments: [DELIVERY],
        options: REMOTE,
        examples: ['session-sidecar deliveries show dlv_1042_1'],
        load: async () => (await import('./delivery.ts')).showDelivery,
      },
      {
        name: 'retry',
        summary: 'Sends one delivery again, by its id, or all dead deliveries.',
        arguments: [{ ...DELIVERY, flags: '[id]' }],
        options: [
          option('--dead', 'all dead deliveries'),
          option('--handler <name>', 'with --dead: only of this handler'),
          option(
            '--since <time>',
            'with --dead: only facts since this time, or within this duration before now, such as 2h',
            {
              parse: pointInTime,
            },
          ),
          option('--dry-run', 'with --dead: only count them'),
          option('--wait', 'show the remaining count until none is pending; exit 1 if any is dead again'),
          ...REMOTE,
        ],
        examples: [
          'session-sidecar deliveries retry --dead --dry-run',
          'session-sidecar deliveries retry --dead --handler app --since 2h --wait',
        ],
        load: async () => (await import('./deliveries.ts')).retry,
      },
    ],
  },
  {
    name: 'tools',
    summary: 'function tools; with --json, as you declare them on a session',
    options: REMOTE,
    examples: ['session-sidecar tools --json'],
    load: async () => (await import('./lists.ts')).tools,
  },
]

/** The commands that change something in a running sidecar. */
const CHANGING: readonly CommandSpec[] = [
  {
    name: 'handlers',
    summary: 'handlers and their backlog',
    options: REMOTE,
    examples: ['session-sidecar handlers', 'session-sidecar handlers pause app'],
    load: async () => (await import('./lists.ts')).handlers,
    commands: [
      {
        name: 'pause',
        summary: 'Stops one handler; its backlog is kept.',
        arguments: [HANDLER],
        options: REMOTE,
        load: async () => (await import('./handlers.ts')).pause,
      },
      {
        name: 'resume',
        summary: 'Resumes one handler.',
        arguments: [HANDLER],
        options: REMOTE,
        load: async () => (await import('./handlers.ts')).resume,
      },
    ],
  },
  {
    name: 'replay',
    summary: 'send past facts to one handler again',
    description: 'Sends past facts to one handler again. Only types that its "events" select are sent.',
    options: [
      option('--handler <name>', 'name of the handler (required)', { required: true }),
      option(
        '--from <seq-or-time>',
        'seq of the first event, time such as 2026-11-21T05:00:00Z, or age such as 2h (required)',
        {
          parse: seqOrTime,
          required: true,
        },
      ),
      option('--wait', 'show the remaining count until none is pending; exit 1 if any is dead'),
      ...REMOTE,
    ],
    examples: ['session-sidecar replay --handler app --from 2h --wait'],
    load: async () => (await import('./replay.ts')).replay,
  },
  {
    name: 'trigger',
    summary: 'send a test fact to a handler',
    description:
      'Sends a signed test fact to a handler in the same way as a real fact, and prints the outcome. The body has "test": true and its id begins with evt_test_; it is neither stored nor counted. Exit 1 if it was not accepted.',
    arguments: [{ flags: '<type>', text: 'type of the fact, such as turn.settled' }],
    options: [
      option('--handler <name>', 'name of the handler (required)', { required: true }),
      option('--data <json>', 'JSON object whose fields replace those of the example data of this type'),
      ...REMOTE,
    ],
    examples: [
      'session-sidecar trigger turn.settled --handler app',
      `session-sidecar trigger turn.failed --handler app --data '{"turn":{"id":"turn_1","status":"failed"}}'`,
    ],
    load: async () => (await import('./trigger.ts')).trigger,
  },
]

/** In the order of the help. */
export const COMMANDS: readonly CommandSpec[] = [
  ...RUNNING,
  ...CHECKING,
  ...READING,
  ...CHANGING,
  {
    name: 'init',
    summary: 'write a commented configuration',
    description:
      'Writes a first configuration, and a secret for callbacks. On a terminal it asks for the missing options. It never overwrites a file.',
    arguments: [{ flags: '[file]', text: 'file to write', default: 'sidecar.yaml' }],
    options: [
      option('--base-url <url>', 'address of the Agent Session Service, without /v1'),
      option(
        '--token-file <file>',
        'file with its access token; by default the configuration reads the environment variable SERVICE_TOKEN',
      ),
      option('--handler-url <url>', 'address where your app receives callbacks'),
      option('--tool <name>', 'name of a function tool that your app answers', { parse: onlyOne }),
      option('--json', 'for programs: the written files'),
    ],
    examples: [
      'session-sidecar init',
      'session-sidecar init sidecar.yaml --base-url https://agents.example.com --handler-url http://127.0.0.1:3000/agent-events',
    ],
    load: async () => (await import('./init.ts')).init,
  },
  {
    name: 'completion',
    summary: 'print a script that completes commands in a shell',
    description: 'Prints a script with which a shell completes the commands and options of this program.',
    arguments: [{ flags: '<shell>', text: 'the shell', choices: ['bash', 'zsh', 'fish'] }],
    examples: ['source <(session-sidecar completion bash)'],
    load: async () => (await import('./completion.ts')).completionOf(COMMANDS),
  },
]
