// A client process of the benchmarks. It is started by `conduct/worker.ts`, does what that asks for, and ends with it.
import { serveCalls } from '@locks/core/conformance/process';
import { contenderNamed } from '../contenders/all.ts';
import type { Session } from '../contenders/contender.ts';
import { readCounts } from '../measure/client-counts.ts';
import { contend } from './contend.ts';
import { coreCost } from './core-cost.ts';
import { Crowd } from './crowd.ts';
import { Fleet } from './fleet.ts';
import { loop } from './loop.ts';
import { ManyLocks } from './many-locks.ts';
import type { WorkerMethods } from './methods.ts';
import { measurePings } from './ping.ts';

let session: Session | undefined;
let many: ManyLocks | undefined;
let fleet: Fleet | undefined;
let crowd: Crowd | undefined;

const methods: WorkerMethods = {
  async open(store, contender, url) {
    session = await (await contenderNamed(store, contender)).open(url);
  },
  loop: (task) => loop(opened(session), task),
  contend: (task) => contend(opened(session), task),
  ping: (count, restMs) => measurePings(opened(session), count, restMs),
  sent: async () => readCounts(),
  async openLocks(store, contender, url, ttlMs) {
    const { openLocks } = await contenderNamed(store, contender);
    if (openLocks === undefined) throw new Error(`${contender} is not ours.`);
    many = new ManyLocks((await openLocks(url, ttlMs)).locks);
  },
  holdAll: (names) => opened(many).holdAll(names),
  watch: (ms) => opened(many).watch(ms),
  queueUp: (names) => opened(many).queueUp(names),
  enterAll: (names) => opened(many).enterAll(names),
  untilWaiting: (names, waiters) => opened(many).untilWaiting(names, waiters),
  endsOf: (names) => opened(many).endsOf(names),
  letGo: () => opened(many).letGo(),
  churn: (count, lanes) => opened(many).churn(count, lanes),
  coreCost,
  holdMore: (count, lanes) => opened(many).holdMore(count, lanes),
  list: () => opened(many).list(),
  join: (name, waiters) => opened(many).join(name, waiters),
  serve: () => opened(many).serve(),
  async hold(name) {
    await opened(session).acquire(name);
  },
  async waitInVain(name, waiters) {
    for (let waiter = 0; waiter < waiters; waiter += 1) void opened(session).acquire(name);
  },
  async spent() {
    const { userCPUTime, systemCPUTime, voluntaryContextSwitches } = process.resourceUsage();
    return { cpuMicros: userCPUTime + systemCPUTime, wakeUps: voluntaryContextSwitches };
  },
  async openFleet(task) {
    fleet = await Fleet.open(task);
    return fleet.heapBytesEach;
  },
  holdInFleet: () => opened(fleet).hold(),
  waitInFleet: () => opened(fleet).wait(),
  isFleetIntact: async () => opened(fleet).isIntact,
  async openCrowd(task) {
    crowd = await Crowd.open(task);
  },
  beginCrowd: async (turns) => opened(crowd).begin(turns),
  crowdCounts: async () => opened(crowd).counts,
  holdCrowd: () => opened(crowd).hold(),
};

function opened<T>(resource: T | undefined): T {
  if (resource === undefined) throw new Error('Nothing was opened in this process yet.');
  return resource;
}

serveCalls(methods);
