import { slotOf } from '@locks/redis-protocol/kit';
import { type GlideClusterConnection, toMasterOf } from './clients.ts';

/**
 * Whether the slot of a key is being migrated. GLIDE repeats a command on such a slot until its time is over, and then reports
 * only that.
 */
export async function isMigrating(client: GlideClusterConnection, key: string): Promise<boolean> {
  try {
    const nodes = String(await client.customCommand(['CLUSTER', 'NODES'], toMasterOf(key)));
    return nodes.includes(`[${slotOf(key)}->-`);
  } catch {
    return false;
  }
}
