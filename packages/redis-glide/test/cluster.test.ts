import { testCluster } from '@locks/test-servers/redis-clients/cluster-tests';
import { glideClusterParticipant, ioredisClusterParticipant } from './setup.ts';

testCluster('GLIDE', glideClusterParticipant, ioredisClusterParticipant);
