import { mutantsOf } from './line-mutant.ts';

const RULES = 'core/src/rules/lock-rules.ts';
const MODES = 'core/src/backend/modes.ts';

const lockRulesMutants = mutantsOf('rules', RULES, [
  ['if (until > now) continue;', 'continue;', 'no lease ends by its time'],
  ['if (until > now) continue;', 'if (until > now + 40) continue;', 'the store ends a lease before its ttl'],
  [
    'if (dead.size > 0) this.#queue.replace(waiters.filter(({ client }) => !dead.has(client)));',
    '',
    'the waiters of dead clients stay',
    'they are granted the resource, and hold it for their ttl',
  ],
  [
    'for (let { next } = this; next !== undefined;',
    'for (let next = undefined as never; next !== undefined;',
    'nobody is served',
  ],
  [
    'this.handedOff.push(this.#grant(next));',
    'this.handedOff.push(this.#grant(next)); return;',
    'one waiter is served at a time',
  ],
  [
    'if (held !== undefined) return attemptedAgain(held, this.#now);',
    '',
    'a repeated attempt does not find its own hold',
  ],
  ["if (this.isQueued(id)) return { status: 'contended' };", '', 'a repeated attempt waits twice'],
  [
    "if (waiting !== undefined && areInConflict(waiting, waiter.mode))\n      return { status: 'conflict', with: waiting };",
    '',
    'a steal contradicts who waits',
  ],
  [
    "if (conflict !== undefined) return { status: 'conflict', with: conflict };",
    '',
    'permits and readers wait in one queue',
  ],
  [
    'if (this.#queue.remove(id)) this.changed = true;\n    this.#end(id);',
    'this.#end(id);',
    'an abandoned waiter stays in the queue',
  ],
  [
    'if (this.#queue.remove(id)) this.changed = true;\n    this.#end(id);',
    'if (this.#queue.remove(id)) this.changed = true;',
    'an abandoned hold stays',
  ],
  ['held back those behind it.\n    this.serve();', 'held back those behind it.', 'an abandon serves nobody'],
  [
    'const ended = this.#end(id);\n    this.serve();',
    'const ended = this.#end(id);',
    'a release serves nobody',
  ],
  [
    'const ended = this.#end(id);',
    'const [ended] = this.forceRelease(undefined);',
    'a release ends the holds of others',
  ],
  [
    '(each) => this.#end(each) ?? []);\n    this.serve();',
    '(each) => this.#end(each) ?? []);',
    'a forced release serves nobody',
  ],
  [
    'return this.#lost(id, token);\n    this.#extend(hold, ttl);',
    "return { status: 'held' };\n    this.#extend(hold, ttl);",
    'a renewal says held of what is lost',
  ],
  ['this.#extend(hold, ttl);', '', 'a renewal is a lie'],
  ["hold.mode = { kind: 'shared' };", '', 'a downgrade is a lie'],
  [
    "hold.mode = { kind: 'shared' };\n      this.#capacity = undefined;",
    "hold.mode = { kind: 'shared' };",
    'what fits beside a downgraded hold is not counted again',
  ],
  [
    'this.changed = true;\n      this.serve();\n    }\n    return',
    'this.changed = true;\n    }\n    return',
    'a downgrade lets no readers in',
  ],
  [
    'for (const hold of this.#holds.values()) hold.mode = { ...(hold.mode as PermitMode), limit };',
    '',
    'a resize does not change the permits that are held',
  ],
  [
    'this.#queue.replace(resized.map((waiter) => this.#uncommit(waiter)));',
    '',
    'a resize does not change the permits that are waited for',
  ],
  [
    'this.changed = true;\n    }\n    this.serve();\n    return undefined;',
    'this.changed = true;\n    }\n    return undefined;',
    'a resize lets nobody in',
  ],
  ['if (hold.span !== undefined) hold.until = at + hold.span;', '', 'a lease has no end'],
  [
    'return this.#queue.length === 0 && this.fits(mode);',
    'return this.fits(mode);',
    'a newcomer overtakes the queue',
  ],
  [
    'return head !== undefined && this.fits(head.mode) ? head : undefined;',
    'return this.#queue.toArray().find(({ mode }) => this.fits(mode));',
    'who fits overtakes a head that does not',
  ],
  [
    'return head !== undefined && this.fits(head.mode) ? head : undefined;',
    'return head;',
    'the head is served whether it fits or not',
  ],
  [
    "return { status: 'granted', hold, left: (hold.until ?? now) - now };",
    "return { status: 'granted', hold };",
    'a repeated attempt takes what is left for the whole ttl',
  ],
  ['this.#holds.clear();\n', '', 'a steal leaves the holds of others'],
  [
    'const hold = this.#grant(waiter, true);\n',
    'this.#queue.replace([]); const hold = this.#grant(waiter, true);\n',
    'a steal ends the queue',
  ],
  [
    "(docs/spec.md §15.2).\n    this.serve();\n    return { status: 'granted', hold };",
    "(docs/spec.md §15.2).\n    return { status: 'granted', hold };",
    'a reader that steals lets no other readers in',
  ],
  ['const token = ++this.token;', 'const token = this.token;', 'a token is used again'],
  [
    'this.#capacity = this.#holds.size === 0 ? undefined : this.#capacity?.without(hold.mode);',
    '',
    'what is free after a release is not counted again',
  ],
  [
    'this.#holds.delete(id);\n      this.#capacity = undefined;',
    'this.#holds.delete(id);',
    'what is free after an end by time is not counted again',
    'nothing has been counted before: each step of a store begins with the ends',
  ],
  [
    'if (this.#capacity?.take(mode) !== true) this.#capacity = undefined;',
    '',
    'what a grant takes is not counted',
  ],
]);

const modesMutants = mutantsOf('rules', MODES, [
  ['return one.limit !== other.limit;', 'return false;', 'permits with another limit are let in'],
  [
    "return one.kind === 'permit' || other.kind === 'permit';",
    'return false;',
    'permits wait beside readers and writers',
  ],
  [
    "return this.#kind === undefined;\n      case 'shared'",
    "return true;\n      case 'shared'",
    'a writer enters beside others',
  ],
  [
    "return this.#kind === undefined || this.#kind === 'shared';",
    'return true;',
    'a reader enters beside a writer',
  ],
  [
    'this.#weight + mode.weight <= mode.limit',
    'this.#weight + mode.weight <= mode.limit + 1',
    'one permit too many is given out',
  ],
  ["if (mode.kind === 'permit') this.#weight += mode.weight;", '', 'permits are not counted'],
  [
    "if (mode.kind === 'permit') this.#weight -= mode.weight;",
    '',
    'permits that are given back stay counted',
  ],
  [
    "if (this.#kind === 'several') return undefined;",
    '',
    'what stands beside a stolen lease is not counted again',
  ],
]);

/** The lines of the rules by which stores decide. */
export const rulesMutants = [...lockRulesMutants, ...modesMutants];
