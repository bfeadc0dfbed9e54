export { eventually, gate, untilAborted } from './eventually.ts';
export { describeHits, LogSearch, type LogHit } from './log-search.ts';
export { freePort } from './free-port.ts';
export { canRunRipgrep, runRipgrep } from './ripgrep.ts';
export { canRunPostgres, startPostgres, TestPostgres } from './postgres.ts';
export { TestRedis } from './redis/redis-server.ts';
export { RedisCluster } from './redis/redis-cluster.ts';
export { ReplicatedRedis } from './redis/replicated-redis.ts';
export { canRun, canRunBubblewrap, canRunDocker } from './sandbox-engines.ts';
export {
  callTools,
  cut,
  cutMidStream,
  finish,
  hang,
  malformedChunk,
  raw,
  say,
  status,
  usage,
  wait,
  type Script,
  until,
  type ScriptedAction,
  type ScriptedCall,
} from './model/scripted-model-script.ts';
export {
  ScriptedModel,
  contextOverflow,
  startScriptedModel,
  type RecordedRequest,
  type RequestMatcher,
  type ScriptedModelOptions,
} from './model/scripted-model.ts';
export { FakeMeta, graphError, type FakeMetaOptions, type MetaWebhook } from './providers/fake-meta.ts';
export type { FakeProvider, ProviderCall, ProviderReply, SendFault } from './providers/fake-provider.ts';
export { FakeSlack, slackError, type FakeSlackOptions } from './providers/fake-slack.ts';
export { OtlpReceiver, type ReceivedSpan } from './providers/otlp-receiver.ts';
export { botError, FakeTelegram } from './providers/fake-telegram.ts';
export { FakeTwilio, twilioError, twilioSignature, type FakeTwilioOptions } from './providers/fake-twilio.ts';
export type { WebhookTry } from './providers/webhook-post.ts';
export { indexBackends, silentLog, stopIndexBackends, type IndexUnderTest } from './index-backends.ts';
export { serveRequests, type RequestHandler } from './request-server.ts';
export { ScriptedEmbeddings, type RecordedEmbeddings } from './model/scripted-embeddings.ts';
export { startRealEmbeddings } from './model/real-embeddings.ts';
export { nestedFlatePdf, onePixelPng, smallPdf } from './small-files.ts';
export { ServiceProcess, serviceFlags, type ServiceOptions } from './service-process.ts';
export { mapMeanings, standInEmbedding, type Synonyms } from './model/stand-in-embedding.ts';
export { countUnanswered, startScriptedSystem, System, type ScriptedSystem, type SystemOptions, type TenantKeys } from './system.ts';
export { WebhookReceiver, type ReceivedWebhook, type WebhookAnswer } from './webhook-receiver.ts';
export { TestTenants, testSecrets, type TestTenantsOptions } from './test-tenants.ts';
export { temporaryDirectory } from './temporary-directory.ts';
