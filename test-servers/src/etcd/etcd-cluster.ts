import { ServerGroup } from '../managed-server.ts';
import { waitUntil } from '../wait-until.ts';
import type { EtcdServer } from './etcd-server.ts';

/** Members of one etcd. A new leader is elected when the leader is killed or paused. */
export class EtcdCluster extends ServerGroup<EtcdServer> {
  /** For clients: every member. */
  get hosts(): string[] {
    return this.members.map(({ url }) => url);
  }

  /** The member that all who answer take for the leader. Rejects when there is none within 15 s. */
  async leader(): Promise<EtcdServer> {
    return await this.#leader(() => true, 'a leader');
  }

  /** Another leader than `old`, known to all who answer. */
  async waitForNewLeader(old: EtcdServer): Promise<EtcdServer> {
    return await this.#leader((server) => server !== old, `a leader other than ${old.name}`);
  }

  async #leader(wanted: (server: EtcdServer) => boolean, what: string): Promise<EtcdServer> {
    const agreed = async () => {
      const running = this.members.filter(({ running }) => running);
      const answers = await Promise.allSettled(running.map((server) => server.status()));
      const views = running.flatMap((server, index) => {
        const answer = answers[index];
        return answer?.status === 'fulfilled' ? [{ server, ...answer.value }] : [];
      });
      const leaders = new Set(views.map(({ leaderId }) => leaderId));
      if (leaders.size !== 1 || views.length <= this.members.length / 2) return undefined;
      const found = views.find(({ memberId }) => leaders.has(memberId))?.server;
      return found !== undefined && wanted(found) ? found : undefined;
    };
    return await waitUntil(agreed, { what, timeoutMs: 15_000, everyMs: 20 });
  }
}
