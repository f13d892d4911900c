import { testUnreachable } from '@locks/test-servers/redis-clients/client-tests';
import { nodeRedisClusterParticipant, nodeRedisParticipant } from './setup.ts';

testUnreachable({
  open: (server) => nodeRedisParticipant(server),
  openCluster: nodeRedisClusterParticipant,
  openBrittle: (server) =>
    nodeRedisParticipant(server, {}, { reconnectStrategy: (_, cause) => ('code' in cause ? cause : 10) }),
  clusterCall: 'createCluster(',
});
