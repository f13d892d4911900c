import { ServerGroup } from '../managed-server.ts';
import { waitUntil } from '../wait-until.ts';
import type { NatsServer } from './nats-server.ts';

/** Members of one cluster with JetStream. Each stream has a leader of its own, and gets another one when that is killed or paused. */
export class NatsCluster extends ServerGroup<NatsServer> {
  /** For clients: every member. */
  get urls(): string[] {
    return this.members.map(({ url }) => url);
  }

  /** The member that leads a stream, as all who answer know it. Rejects when there is none within 20 s. */
  async leader(stream: string): Promise<NatsServer> {
    return await this.#leader(stream, () => true, 'a leader');
  }

  /** Another leader than `old`, known to all who answer. */
  async waitForNewLeader(stream: string, old: NatsServer): Promise<NatsServer> {
    return await this.#leader(stream, (server) => server !== old, `a leader other than ${old.name}`);
  }

  async #leader(stream: string, wanted: (server: NatsServer) => boolean, what: string): Promise<NatsServer> {
    const agreed = async () => {
      const running = this.members.filter((server) => server.running);
      const answers = await Promise.allSettled(running.map((server) => server.streamLeader(stream)));
      const names = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
      if (new Set(names).size !== 1 || names.length <= this.members.length / 2) return undefined;
      const found = running.find(({ name }) => name === names[0]);
      return found !== undefined && wanted(found) ? found : undefined;
    };
    return await waitUntil(agreed, { what: `${what} of ${stream}`, timeoutMs: 20_000, everyMs: 50 });
  }
}
