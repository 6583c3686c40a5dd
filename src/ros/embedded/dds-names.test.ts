import t from 'tap';
import { HEALTH_STATUS } from '../interfaces.generated.ts';
import { clientIdOf, hasTypeHash, replyTopicOf, requestTopicOf, topicOf, typeHashData } from './dds-names.ts';

t.test('topics and services have their DDS names', async (t) => {
  t.equal(topicOf('/health_status'), 'rt/health_status');
  t.equal(topicOf('/robot1/health_status'), 'rt/robot1/health_status');
  t.equal(requestTopicOf('/safe_shutdown'), 'rq/safe_shutdownRequest');
  t.equal(replyTopicOf('/robot1/safe_shutdown'), 'rr/robot1/safe_shutdownReply');
});

t.test('the type hash and the client id are read from user data', async (t) => {
  t.match(typeHashData(HEALTH_STATUS), /^typehash=RIHS01_[0-9a-f]{64};$/);
  t.ok(hasTypeHash(typeHashData(HEALTH_STATUS)));
  t.notOk(hasTypeHash(''), 'Humble announces no hash');
  t.notOk(hasTypeHash('clientid= 1.10.2;'));
  t.equal(clientIdOf('clientid= 1.10.32;typehash=RIHS01_00;'), ' 1.10.32');
  t.equal(clientIdOf('typehash=RIHS01_00;clientid=1.2;'), '1.2');
  t.equal(clientIdOf('serviceid= 1.10.32;'), null);
  t.equal(clientIdOf('myclientid=1;'), null);
});
