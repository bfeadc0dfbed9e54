import { listAgents } from './tenant/agents.ts';
import { deleteChannel, getChannel, listChannels, putChannel, testChannel } from './channels.ts';
import { chatWithAdmin, chatWithAgent, chatWithCs } from './chat.ts';
import { createSchedule, deleteSchedule, getSchedule, listScheduleRuns, listSchedules, runSchedule, updateSchedule } from './cron.ts';
import { getDelivery, listDeliveries, redriveDelivery } from './deliveries.ts';
import {
  createEventEndpoint,
  deleteEventEndpoint,
  getEvent,
  getEventEndpoint,
  listEventEndpoints,
  listEvents,
  redriveEvent,
  redriveEventEndpoint,
  rotateEventSecret,
  testEventEndpoint,
  updateEventEndpoint,
} from './events.ts';
import { deleteFile, getFile, listFiles, putFile } from './tenant/files.ts';
import { answerAsPerson, getHandoff, giveBack, listHandoffs, takeOver } from './handoffs.ts';
import { createKey, listKeys, revokeKey, rotateKey } from './tenant/keys.ts';
import { deleteMcpServer, getMcpServer, listMcpServers, putMcpServer, serveMcp, testMcpServer } from './tenant/mcp.ts';
import { forgetContact, forgetContactNote, getContactNote, getNotedContact, listNotedContacts, searchMemory } from './tenant/memory.ts';
import { createChatCompletion, createResponse, getModel, listModels } from './openai.ts';
import { docs, livez, metrics, openapi, queues, readyz } from './operations.ts';
import type { Route } from './route.ts';
import { deleteSession, getSession, listSessions } from './sessions.ts';
import { listSkills, reindexSkills } from './tenant/skills.ts';
import { getTenant, updateTenant } from './tenant/tenant.ts';
import { cancelTurn, followTurn, getTurn, listTurns } from './turns.ts';
import { createUploads } from './uploads.ts';
import { getUsage } from './tenant/usage.ts';
import { receiveWebhook, verifyWebhook } from './webhooks.ts';
import {
  cancelWidgetTurn,
  followWidgetTurn,
  getWidget,
  putWidget,
  rotateWidgetKey,
  rotateWidgetSecret,
  sendWidgetMessage,
  widgetConversation,
  widgetScript,
  widgetSettings,
} from './widget.ts';

/** Every endpoint of the service by its id, in the order in which the documentation shows them. */
export const routes = {
  chatWithAdmin,
  chatWithCs,
  chatWithAgent,
  createChatCompletion,
  createResponse,
  listModels,
  getModel,
  listAgents,
  listTurns,
  getTurn,
  followTurn,
  cancelTurn,
  listSessions,
  getSession,
  deleteSession,
  listHandoffs,
  getHandoff,
  takeOver,
  giveBack,
  answerAsPerson,
  listSkills,
  reindexSkills,
  createUploads,
  getTenant,
  updateTenant,
  listFiles,
  getFile,
  putFile,
  deleteFile,
  listKeys,
  createKey,
  revokeKey,
  rotateKey,
  searchMemory,
  listNotedContacts,
  getNotedContact,
  forgetContact,
  getContactNote,
  forgetContactNote,
  getUsage,
  listSchedules,
  createSchedule,
  getSchedule,
  updateSchedule,
  deleteSchedule,
  runSchedule,
  listScheduleRuns,
  listChannels,
  getChannel,
  putChannel,
  deleteChannel,
  testChannel,
  listDeliveries,
  getDelivery,
  redriveDelivery,
  listEventEndpoints,
  createEventEndpoint,
  getEventEndpoint,
  updateEventEndpoint,
  deleteEventEndpoint,
  rotateEventSecret,
  testEventEndpoint,
  redriveEventEndpoint,
  listEvents,
  getEvent,
  redriveEvent,
  listMcpServers,
  getMcpServer,
  putMcpServer,
  deleteMcpServer,
  testMcpServer,
  serveMcp,
  getWidget,
  putWidget,
  rotateWidgetKey,
  rotateWidgetSecret,
  widgetScript,
  widgetSettings,
  sendWidgetMessage,
  followWidgetTurn,
  cancelWidgetTurn,
  widgetConversation,
  verifyWebhook,
  receiveWebhook,
  livez,
  readyz,
  metrics,
  openapi,
  docs,
  queues,
} as const satisfies Record<string, Route>;

export type Routes = typeof routes;
export type RouteId = keyof Routes;
