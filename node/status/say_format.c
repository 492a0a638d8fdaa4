/* SPDX-License-Identifier: Apache-2.0 */
/* say_format.c - sentences of the node in the languages of the page, known by the formats that they are made with
 * (node/jobs/node_problems.c, dicom/object/patient.c, node/jobs/companion.c).
 *
 * A sentence fits a format if it has the format's words, digits where the format has a number, and anything where it has %s. Its
 * values are then put into the translation, whose conversions are in the same order. Where the translation has %w for %s, the value is
 * said, too: it is a clause with a format of its own, or one of the words that the node puts into its sentences. A name or a reason
 * stays as it is, whatever it is. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "node/status/say.h"

#define VALUES_MAX 8
#define VALUE_SIZE 1200
#define DEPTH 1 /* a value may be a clause, whose values are words */

/* As in say.c. The first that fits counts. */
static const char *const formats[][LANGUAGES] = {
	/* clang-format off */
	{" came within %g s", " ist in %g s eingetroffen", " llegó en %g s", " chegou em %g s"},
	{"%llu %s for the indexer, the oldest since %.0f s: %s cases are not shown yet.",
	 "%llu %w auf den Indexer, das älteste seit %.0f s: %w Fälle werden noch nicht gezeigt.",
	 "%llu %w al indexador, el más antiguo desde hace %.0f s: %w casos aún no se muestran.",
	 "%llu %w o indexador, o mais antigo há %.0f s: %w casos ainda não são mostrados."},
	{"%llu %s in %s/%s but not in the journal: a crash left %s, or this is an older journal.",
	 "%llu %w in %s/%s, aber nicht im Journal: Ein Absturz hat %w hinterlassen, oder dies ist ein älteres Journal.",
	 "%llu %w en %s/%s, pero no en el registro de casos: una caída %w dejó, o este registro es más antiguo.",
	 "%llu %w em %s/%s, mas não no registro de casos: uma queda %w deixou, ou este registro é mais antigo."},
	{"%s: a list of revoked certificates in %s ended on %s: no peer with a certificate of this authority is accepted until the list is replaced.",
	 "%s: Eine Sperrliste in %s ist am %s abgelaufen: Keine Gegenstelle mit einem Zertifikat dieser Stelle wird angenommen, bis die Liste ersetzt ist.",
	 "%s: una lista de certificados revocados en %s caducó el %s: no se acepta ningún sistema con un certificado de esta autoridad hasta que se sustituya la lista.",
	 "%s: uma lista de certificados revogados em %s expirou em %s: nenhum sistema com um certificado desta autoridade é aceito até que a lista seja substituída."},
	{"%s: a list of revoked certificates in %s ends on %s.",
	 "%s: Eine Sperrliste in %s läuft am %s ab.",
	 "%s: una lista de certificados revocados en %s caduca el %s.",
	 "%s: uma lista de certificados revogados em %s expira em %s."},
	{"%s: the certificate in %s expired on %s: peers will refuse it.",
	 "%s: Das Zertifikat in %s ist am %s abgelaufen: Gegenstellen werden es ablehnen.",
	 "%s: el certificado en %s caducó el %s: los otros sistemas lo rechazarán.",
	 "%s: o certificado em %s expirou em %s: os outros sistemas o recusarão."},
	{"%s: the certificate in %s expires on %s, in %.0f days.",
	 "%s: Das Zertifikat in %s läuft am %s ab, in %.0f Tagen.",
	 "%s: el certificado en %s caduca el %s, en %.0f días.",
	 "%s: o certificado em %s expira em %s, em %.0f dias."},
	{"%s: the certificate in %s is not valid before %s: peers will refuse it.",
	 "%s: Das Zertifikat in %s gilt erst ab %s: Gegenstellen werden es ablehnen.",
	 "%s: el certificado en %s no es válido antes del %s: los otros sistemas lo rechazarán.",
	 "%s: o certificado em %s não é válido antes de %s: os outros sistemas o recusarão."},
	{"%zu %s found no space, or no access to files, in %d attempts or more.",
	 "%zu %w in %d oder mehr Versuchen keinen Platz oder keinen Zugriff auf Dateien gefunden.",
	 "%zu %w espacio, o acceso a los archivos, en %d intentos o más.",
	 "%zu %w espaço, ou acesso aos arquivos, em %d tentativas ou mais."},
	{"Alerts cannot be sent: %s.",
	 "Meldungen können nicht gesendet werden: %s.",
	 "No se pueden enviar alertas: %s.",
	 "Os alertas não podem ser enviados: %s."},
	{"Audit messages are not taken: %s. They wait in SPOOL/audit and are sent later.",
	 "Audit-Nachrichten werden nicht angenommen: %s. Sie warten in SPOOL/audit und werden später gesendet.",
	 "No se aceptan los mensajes de auditoría: %s. Esperan en SPOOL/audit y se envían más tarde.",
	 "As mensagens de auditoria não são aceitas: %s. Elas aguardam em SPOOL/audit e são enviadas mais tarde."},
	{"Cases wait until other jobs end; more pilots need another partition or priority.",
	 "Fälle warten, bis andere Jobs enden; mehr Piloten brauchen eine andere Partition oder Priorität.",
	 "Los casos esperan hasta que terminen otros trabajos; más pilotos requieren otra partición o prioridad.",
	 "Os casos aguardam até que outros jobs terminem; mais pilotos requerem outra partição ou prioridade."},
	{"Change the order of the routes, its patterns or its AE title, or remove it.",
	 "Ändern Sie die Reihenfolge der Routen, ihre Muster oder ihren AE-Titel, oder entfernen Sie sie.",
	 "Cambie el orden de las rutas, sus patrones o su AE title, o elimínela.",
	 "Altere a ordem das rotas, seus padrões ou seu AE title, ou remova-a."},
	{"Check node.audit_file, its owner and mode, or the syslog socket.",
	 "Prüfen Sie node.audit_file, seinen Eigentümer und seine Rechte, oder den Socket von syslog.",
	 "Compruebe node.audit_file, su propietario y sus permisos, o el socket de syslog.",
	 "Verifique node.audit_file, seu proprietário e suas permissões, ou o socket do syslog."},
	{"Check slurmctld and munge (scontrol ping); it is tried again automatically.",
	 "Prüfen Sie slurmctld und munge (scontrol ping); es wird von selbst noch einmal versucht.",
	 "Compruebe slurmctld y munge (scontrol ping); se intenta de nuevo automáticamente.",
	 "Verifique slurmctld e munge (scontrol ping); uma nova tentativa é feita automaticamente."},
	{"Check the clock of this machine.",
	 "Prüfen Sie die Uhr dieser Maschine.",
	 "Compruebe el reloj de esta máquina.",
	 "Verifique o relógio desta máquina."},
	{"Check the disk and its mount.",
	 "Prüfen Sie die Platte und ob sie eingehängt ist.",
	 "Compruebe el disco y su montaje.",
	 "Verifique o disco e sua montagem."},
	{"Check the folder, its owner and mode, and the disk.",
	 "Prüfen Sie den Ordner, seinen Eigentümer und seine Rechte, und die Platte.",
	 "Compruebe la carpeta, su propietario y sus permisos, y el disco.",
	 "Verifique a pasta, seu proprietário e suas permissões, e o disco."},
	{"Check the keys of slurm in the configuration (tomonode check), and the account.",
	 "Prüfen Sie die Schlüssel von slurm in der Konfiguration (tomonode check) und das Konto.",
	 "Compruebe las claves de slurm en la configuración (tomonode check) y la cuenta.",
	 "Verifique as chaves de slurm na configuração (tomonode check) e a conta."},
	{"Check the spool's disk (space, inodes, mount), its owner and mode.",
	 "Prüfen Sie die Platte des Spools (Platz, Inodes, Einhängung), ihren Eigentümer und ihre Rechte.",
	 "Compruebe el disco del spool (espacio, inodos, montaje), su propietario y sus permisos.",
	 "Verifique o disco do spool (espaço, inodes, montagem), seu proprietário e suas permissões."},
	{"Check the spool's disk and the log; restart the node.",
	 "Prüfen Sie die Platte des Spools und die Protokolldatei; starten Sie den Knoten neu.",
	 "Compruebe el disco del spool y el log; reinicie el nodo.",
	 "Verifique o disco do spool e o log; reinicie o nó."},
	{"Check the spool's disk; if the file is damaged, restore a backup (docs/disk-dies.md).",
	 "Prüfen Sie die Platte des Spools; wenn die Datei beschädigt ist, spielen Sie eine Sicherung ein (docs/disk-dies.md).",
	 "Compruebe el disco del spool; si el archivo está dañado, restaure una copia (docs/disk-dies.md).",
	 "Verifique o disco do spool; se o arquivo estiver danificado, restaure uma cópia (docs/disk-dies.md)."},
	{"Check the spool's disk; the node tries again automatically. If the file is damaged, restore a backup (docs/disk-dies.md).",
	 "Prüfen Sie die Platte des Spools; der Knoten versucht es von selbst noch einmal. Wenn die Datei beschädigt ist, spielen Sie eine Sicherung ein (docs/disk-dies.md).",
	 "Compruebe el disco del spool; el nodo lo intenta de nuevo automáticamente. Si el archivo está dañado, restaure una copia (docs/disk-dies.md).",
	 "Verifique o disco do spool; o nó tenta de novo automaticamente. Se o arquivo estiver danificado, restaure uma cópia (docs/disk-dies.md)."},
	{"Continue it (kill -CONT), or restart the node.",
	 "Lassen Sie ihn weiterlaufen (kill -CONT) oder starten Sie den Knoten neu.",
	 "Haga que continúe (kill -CONT) o reinicie el nodo.",
	 "Faça-o continuar (kill -CONT) ou reinicie o nó."},
	{"Correct host of the destination, or the name service.",
	 "Korrigieren Sie host des Ziels oder den Namensdienst.",
	 "Corrija host del destino o el servicio de nombres.",
	 "Corrija host do destino ou o serviço de nomes."},
	{"Correct it on the pilot's machine: it connects again by itself, or when its job or container is started again.",
	 "Korrigieren Sie es auf der Maschine des Piloten: Er verbindet sich von selbst wieder, oder wenn sein Job oder Container neu gestartet wird.",
	 "Corríjalo en la máquina del piloto: se conecta de nuevo por sí solo, o cuando se reinicie su trabajo o contenedor.",
	 "Corrija-o na máquina do piloto: ele se conecta de novo sozinho, ou quando seu job ou contêiner for reiniciado."},
	{"Correct node.device, or repair a device, and reload the configuration.",
	 "Korrigieren Sie node.device, oder reparieren Sie ein Gerät, und laden Sie die Konfiguration neu.",
	 "Corrija node.device, o repare un dispositivo, y recargue la configuración.",
	 "Corrija node.device, ou repare um dispositivo, e recarregue a configuração."},
	{"Correct the configuration (tomonode check) and reload it again.",
	 "Korrigieren Sie die Konfiguration (tomonode check) und laden Sie sie noch einmal.",
	 "Corrija la configuración (tomonode check) y recárguela de nuevo.",
	 "Corrija a configuração (tomonode check) e recarregue-a de novo."},
	{"Correct the files and reload the configuration.",
	 "Korrigieren Sie die Dateien und laden Sie die Konfiguration neu.",
	 "Corrija los archivos y recargue la configuración.",
	 "Corrija os arquivos e recarregue a configuração."},
	{"Destination %s: the name %s cannot be resolved: %s. Nothing can be sent to it.",
	 "Ziel %s: Der Name %s kann nicht aufgelöst werden: %s. Nichts kann dorthin gesendet werden.",
	 "Destino %s: el nombre %s no se puede resolver: %s. No se le puede enviar nada.",
	 "Destino %s: o nome %s não pode ser resolvido: %s. Nada pode ser enviado a ele."},
	{"Device %s is disabled: %s.",
	 "Das Gerät %s ist deaktiviert: %s.",
	 "El dispositivo %s está desactivado: %s.",
	 "O dispositivo %s está desativado: %s."},
	{"Free space on the spool's disk, or set node.retention_space or node.reserve lower.",
	 "Machen Sie Platz auf der Platte des Spools, oder setzen Sie node.retention_space oder node.reserve niedriger.",
	 "Libere espacio en el disco del spool, o reduzca node.retention_space o node.reserve.",
	 "Libere espaço no disco do spool, ou reduza node.retention_space ou node.reserve."},
	{"Install a new certificate and reload the configuration.",
	 "Installieren Sie ein neues Zertifikat und laden Sie die Konfiguration neu.",
	 "Instale un certificado nuevo y recargue la configuración.",
	 "Instale um novo certificado e recarregue a configuração."},
	{"It is restarted automatically; if this stays, see the log (receiver-failed).",
	 "Er wird von selbst neu gestartet; wenn dies so bleibt, sehen Sie in die Protokolldatei (receiver-failed).",
	 "Se reinicia automáticamente; si esto persiste, consulte el log (receiver-failed).",
	 "Ele é reiniciado automaticamente; se isto persistir, consulte o log (receiver-failed)."},
	{"It is tested again automatically; check it with tomonode devices --check.",
	 "Es wird von selbst noch einmal geprüft; prüfen Sie es mit tomonode devices --check.",
	 "Se prueba de nuevo automáticamente; compruébelo con tomonode devices --check.",
	 "Ele é testado de novo automaticamente; verifique-o com tomonode devices --check."},
	{"It is tried again automatically.",
	 "Es wird von selbst noch einmal versucht.",
	 "Se intenta de nuevo automáticamente.",
	 "Uma nova tentativa é feita automaticamente."},
	{"Let %s permit storage commitment, and know AE title, address and port of this node.",
	 "%s muss die Bestätigung der Speicherung (Storage Commitment) erlauben und AE-Titel, Adresse und Port dieses Knotens kennen.",
	 "%s debe permitir la confirmación del almacenamiento (Storage Commitment) y conocer el título AE, la dirección y el puerto de este nodo.",
	 "%s deve permitir a confirmação do armazenamento (Storage Commitment) e conhecer o título AE, o endereço e a porta deste nó."},
	{"Let the node deliver what it can, then restore a backup, or move the spool away and send its images again (docs/disk-dies.md).",
	 "Lassen Sie den Knoten zustellen, was er kann; spielen Sie dann eine Sicherung ein, oder verschieben Sie den Spool und senden Sie seine Bilder noch einmal (docs/disk-dies.md).",
	 "Deje que el nodo entregue lo que pueda; después restaure una copia, o aparte el spool y envíe de nuevo sus imágenes (docs/disk-dies.md).",
	 "Deixe o nó entregar o que puder; depois restaure uma cópia, ou afaste o spool e envie suas imagens de novo (docs/disk-dies.md)."},
	{"Mend the cause, then restart the node: it checks the journal when it starts.",
	 "Beheben Sie die Ursache und starten Sie dann den Knoten neu: Er prüft das Journal, wenn er startet.",
	 "Corrija la causa y reinicie después el nodo: comprueba el registro de casos al iniciarse.",
	 "Corrija a causa e depois reinicie o nó: ele verifica o registro de casos ao iniciar."},
	{"Mend the cause, then reload the configuration (systemctl reload tomonode).",
	 "Beheben Sie die Ursache und laden Sie dann die Konfiguration neu (systemctl reload tomonode).",
	 "Corrija la causa y recargue después la configuración (systemctl reload tomonode).",
	 "Corrija a causa e depois recarregue a configuração (systemctl reload tomonode)."},
	{"Mend the reason (tomonode show ID: space, or the owner of files); the cases are tried again automatically, or at once with tomonode retry ID.",
	 "Beheben Sie den Grund (tomonode show ID: Platz oder Eigentümer von Dateien); die Fälle werden von selbst noch einmal versucht, oder sofort mit tomonode retry ID.",
	 "Corrija el motivo (tomonode show ID: espacio, o propietario de los archivos); los casos se intentan de nuevo automáticamente, o de inmediato con tomonode retry ID.",
	 "Corrija o motivo (tomonode show ID: espaço, ou proprietário dos arquivos); os casos são tentados de novo automaticamente, ou de imediato com tomonode retry ID."},
	{"No object can be written: %s. New images are refused.",
	 "Kein Objekt kann geschrieben werden: %s. Neue Bilder werden abgelehnt.",
	 "No se puede escribir ningún objeto: %s. Se rechazan imágenes nuevas.",
	 "Nenhum objeto pode ser gravado: %s. Novas imagens são recusadas."},
	{"No pilot is connected, and devices of this machine are not used: %s.",
	 "Kein Pilot ist verbunden, und Geräte dieser Maschine werden nicht benutzt: %w.",
	 "Ningún piloto está conectado y no se usan dispositivos de esta máquina: %w.",
	 "Nenhum piloto está conectado e dispositivos desta máquina não são usados: %w."},
	{"No result can be written: %s. Cases wait.",
	 "Kein Ergebnis kann geschrieben werden: %s. Fälle warten.",
	 "No se puede escribir ningún resultado: %s. Los casos esperan.",
	 "Nenhum resultado pode ser gravado: %s. Os casos aguardam."},
	{"Pilots cannot connect: %s.",
	 "Piloten können sich nicht verbinden: %s.",
	 "Los pilotos no pueden conectarse: %s.",
	 "Os pilotos não podem se conectar: %s."},
	{"Raise the limit, or lower node.max_associations; then restart the node.",
	 "Erhöhen Sie die Grenze, oder senken Sie node.max_associations; starten Sie dann den Knoten neu.",
	 "Aumente el límite, o reduzca node.max_associations; después reinicie el nodo.",
	 "Aumente o limite, ou reduza node.max_associations; depois reinicie o nó."},
	{"Remove the limit, then restart the node.",
	 "Entfernen Sie die Grenze und starten Sie dann den Knoten neu.",
	 "Elimine el límite y reinicie después el nodo.",
	 "Remova o limite e depois reinicie o nó."},
	{"Replace the list and reload the configuration.",
	 "Ersetzen Sie die Liste und laden Sie die Konfiguration neu.",
	 "Sustituya la lista y recargue la configuración.",
	 "Substitua a lista e recarregue a configuração."},
	{"Results cannot be sent to %s: %s. %zu case waits for it; the node tries again automatically.",
	 "Ergebnisse können nicht an %s gesendet werden: %w. %zu Fall wartet darauf; der Knoten versucht es von selbst noch einmal.",
	 "No se pueden enviar resultados a %s: %w. %zu caso espera por ello; el nodo lo intenta de nuevo automáticamente.",
	 "Os resultados não podem ser enviados para %s: %w. %zu caso aguarda por isso; o nó tenta de novo automaticamente."},
	{"Results cannot be sent to %s: %s. %zu cases wait for it; the node tries again automatically.",
	 "Ergebnisse können nicht an %s gesendet werden: %w. %zu Fälle warten darauf; der Knoten versucht es von selbst noch einmal.",
	 "No se pueden enviar resultados a %s: %w. %zu casos esperan por ello; el nodo lo intenta de nuevo automáticamente.",
	 "Os resultados não podem ser enviados para %s: %w. %zu casos aguardam por isso; o nó tenta de novo automaticamente."},
	{"Route %s is never used: %s.",
	 "Die Route %s wird nie benutzt: %s.",
	 "La ruta %s no se usa nunca: %s.",
	 "A rota %s nunca é usada: %s."},
	{"See in the log which peers hold them (association-accepted); limit these (associations of peers, node.peer_associations), or raise node.max_associations.",
	 "Sehen Sie in der Protokolldatei, welche Gegenstellen sie halten (association-accepted); begrenzen Sie diese (associations von peers, node.peer_associations), oder erhöhen Sie node.max_associations.",
	 "Vea en el log qué sistemas las ocupan (association-accepted); limítelos (associations de peers, node.peer_associations), o aumente node.max_associations.",
	 "Veja no log quais sistemas as ocupam (association-accepted); limite-os (associations de peers, node.peer_associations), ou aumente node.max_associations."},
	{"See squeue and sinfo -R: nodes or the partition are down or drained.",
	 "Sehen Sie squeue und sinfo -R an: Rechner oder die Partition sind außer Betrieb oder gesperrt (drained).",
	 "Consulte squeue y sinfo -R: hay nodos, o la partición, fuera de servicio o bloqueados (drained).",
	 "Consulte squeue e sinfo -R: há nós, ou a partição, fora de serviço ou bloqueados (drained)."},
	{"See the job's output (output of slurm) and docs/cluster.md.",
	 "Sehen Sie die Ausgabe des Jobs (output von slurm) und docs/cluster.md an.",
	 "Consulte la salida del trabajo (output de slurm) y docs/cluster.md.",
	 "Consulte a saída do job (output de slurm) e docs/cluster.md."},
	{"See the log (process-stuck, index-failed) and the machine's load.",
	 "Sehen Sie in die Protokolldatei (process-stuck, index-failed) und auf die Last der Maschine.",
	 "Consulte el log (process-stuck, index-failed) y la carga de la máquina.",
	 "Consulte o log (process-stuck, index-failed) e a carga da máquina."},
	{"Send it to this node again (storescu; images that it has are not stored twice), then remove it.",
	 "Senden Sie es noch einmal an diesen Knoten (storescu; Bilder, die er hat, werden nicht doppelt gespeichert), und entfernen Sie es dann.",
	 "Envíela de nuevo a este nodo (storescu; las imágenes que ya tiene no se almacenan dos veces) y elimínela después.",
	 "Envie-a de novo a este nó (storescu; as imagens que ele já tem não são armazenadas duas vezes) e depois remova-a."},
	{"Send them to this node again (storescu; images that it has are not stored twice), then remove them.",
	 "Senden Sie sie noch einmal an diesen Knoten (storescu; Bilder, die er hat, werden nicht doppelt gespeichert), und entfernen Sie sie dann.",
	 "Envíelas de nuevo a este nodo (storescu; las imágenes que ya tiene no se almacenan dos veces) y elimínelas después.",
	 "Envie-as de novo a este nó (storescu; as imagens que ele já tem não são armazenadas duas vezes) e depois remova-as."},
	{"Start a pilot (tomonode pilot).",
	 "Starten Sie einen Piloten (tomonode pilot).",
	 "Inicie un piloto (tomonode pilot).",
	 "Inicie um piloto (tomonode pilot)."},
	{"Start it (systemctl start tomonode), and see the log for why it ended.",
	 "Starten Sie ihn (systemctl start tomonode), und sehen Sie in der Protokolldatei, warum er geendet hat.",
	 "Inícielo (systemctl start tomonode) y vea en el log por qué terminó.",
	 "Inicie-o (systemctl start tomonode) e veja no log por que terminou."},
	{"Stop the node, put the right journal.db back (with its -wal and -shm), and start the node.",
	 "Halten Sie den Knoten an, legen Sie die richtige journal.db zurück (mit -wal und -shm), und starten Sie den Knoten.",
	 "Detenga el nodo, vuelva a poner la journal.db correcta (con sus -wal y -shm) e inicie el nodo.",
	 "Pare o nó, reponha a journal.db correta (com seus -wal e -shm) e inicie o nó."},
	{"Stop the other program, or change status.port; it is tried again automatically.",
	 "Beenden Sie das andere Programm, oder ändern Sie status.port; es wird von selbst noch einmal versucht.",
	 "Detenga el otro programa, o cambie status.port; se intenta de nuevo automáticamente.",
	 "Pare o outro programa, ou altere status.port; uma nova tentativa é feita automaticamente."},
	{"Stop the other program, or correct bind and port of cluster; it is tried again automatically.",
	 "Beenden Sie das andere Programm, oder korrigieren Sie bind und port von cluster; es wird von selbst noch einmal versucht.",
	 "Detenga el otro programa, o corrija bind y port de cluster; se intenta de nuevo automáticamente.",
	 "Pare o outro programa, ou corrija bind e port de cluster; uma nova tentativa é feita automaticamente."},
	{"Storage is not confirmed by %s: %s. %zu case was sent and waits for it; the node asks again automatically.",
	 "%s hat die Speicherung nicht bestätigt: %w. %zu Fall wurde gesendet und wartet darauf; der Knoten fragt von selbst noch einmal.",
	 "%s no ha confirmado el almacenamiento: %w. %zu caso fue enviado y espera por ello; el nodo pregunta de nuevo automáticamente.",
	 "%s não confirmou o armazenamento: %w. %zu caso foi enviado e aguarda por isso; o nó pergunta de novo automaticamente."},
	{"Storage is not confirmed by %s: %s. %zu cases were sent and wait for it; the node asks again automatically.",
	 "%s hat die Speicherung nicht bestätigt: %w. %zu Fälle wurden gesendet und warten darauf; der Knoten fragt von selbst noch einmal.",
	 "%s no ha confirmado el almacenamiento: %w. %zu casos fueron enviados y esperan por ello; el nodo pregunta de nuevo automáticamente.",
	 "%s não confirmou o armazenamento: %w. %zu casos foram enviados e aguardam por isso; o nó pergunta de novo automaticamente."},
	{"Test it with tomonode test-alert; it is tried again automatically.",
	 "Prüfen Sie es mit tomonode test-alert; es wird von selbst noch einmal versucht.",
	 "Pruébelo con tomonode test-alert; se intenta de nuevo automáticamente.",
	 "Teste-o com tomonode test-alert; uma nova tentativa é feita automaticamente."},
	{"Test it with tomonode test-peer %s.",
	 "Prüfen Sie es mit tomonode test-peer %s.",
	 "Pruébelo con tomonode test-peer %s.",
	 "Teste-o com tomonode test-peer %s."},
	{"The %s process (%ld) has given no sign of life for %.0f s%s.",
	 "Der Prozess %s (%ld) hat seit %.0f s kein Lebenszeichen gegeben%w.",
	 "El proceso %s (%ld) no da señales de vida desde hace %.0f s%w.",
	 "O processo %s (%ld) não dá sinal de vida há %.0f s%w."},
	{"The %s process (%ld) is stopped by a signal%s.",
	 "Der Prozess %s (%ld) ist durch ein Signal angehalten%w.",
	 "El proceso %s (%ld) está detenido por una señal%w.",
	 "O processo %s (%ld) está parado por um sinal%w."},
	{"The configuration was not reloaded, the earlier one is in effect: %s.",
	 "Die Konfiguration wurde nicht neu geladen, die frühere gilt weiter: %s.",
	 "La configuración no se ha recargado; sigue vigente la anterior: %s.",
	 "A configuração não foi recarregada; a anterior continua em vigor: %s."},
	{"The disk is full: %s are free, %s must stay free. New images are refused until there is space.",
	 "Die Platte ist voll: %s sind frei, %s müssen frei bleiben. Neue Bilder werden abgelehnt, bis Platz ist.",
	 "El disco está lleno: quedan libres %s y deben quedar libres %s. Se rechazan imágenes nuevas hasta que haya espacio.",
	 "O disco está cheio: %s estão livres, %s devem ficar livres. Novas imagens são recusadas até que haja espaço."},
	{"The disk is nearly full: %s are free; below %s new images are refused.",
	 "Die Platte ist fast voll: %s sind frei; unter %s werden neue Bilder abgelehnt.",
	 "El disco está casi lleno: quedan libres %s; por debajo de %s se rechazan imágenes nuevas.",
	 "O disco está quase cheio: %s estão livres; abaixo de %s, novas imagens são recusadas."},
	{"The journal %s/journal.db was removed or replaced while the node runs: new images are recorded in another file than the one that the node reads.",
	 "Das Journal %s/journal.db wurde entfernt oder ersetzt, während der Knoten läuft: Neue Bilder werden in eine andere Datei eingetragen als die, die der Knoten liest.",
	 "El registro de casos %s/journal.db se eliminó o se sustituyó con el nodo en marcha: las imágenes nuevas se anotan en un archivo distinto del que lee el nodo.",
	 "O registro de casos %s/journal.db foi removido ou substituído com o nó em execução: novas imagens são anotadas em um arquivo diferente do que o nó lê."},
	{"The journal cannot be read: %s.",
	 "Das Journal kann nicht gelesen werden: %s.",
	 "No se puede leer el registro de casos: %s.",
	 "O registro de casos não pode ser lido: %s."},
	{"The journal is damaged: %s. Cases may not continue; new images are accepted and kept.",
	 "Das Journal ist beschädigt: %s. Fälle laufen vielleicht nicht weiter; neue Bilder werden angenommen und behalten.",
	 "El registro de casos está dañado: %s. Puede que los casos no continúen; las imágenes nuevas se aceptan y se conservan.",
	 "O registro de casos está danificado: %s. Talvez os casos não continuem; novas imagens são aceitas e mantidas."},
	{"The journal was not checked for damage: %s.",
	 "Das Journal wurde nicht auf Schäden geprüft: %s.",
	 "No se comprobó si el registro de casos está dañado: %s.",
	 "Não foi verificado se o registro de casos está danificado: %s."},
	{"The main process (%ld) has given no sign of life for %.0f s: no case continues.",
	 "Der Hauptprozess (%ld) hat seit %.0f s kein Lebenszeichen gegeben: Kein Fall läuft weiter.",
	 "El proceso principal (%ld) no da señales de vida desde hace %.0f s: ningún caso continúa.",
	 "O processo principal (%ld) não dá sinal de vida há %.0f s: nenhum caso continua."},
	{"The main process (%ld) is stopped by a signal: images are stored, but no case continues.",
	 "Der Hauptprozess (%ld) ist durch ein Signal angehalten: Bilder werden gespeichert, aber kein Fall läuft weiter.",
	 "El proceso principal (%ld) está detenido por una señal: las imágenes se almacenan, pero ningún caso continúa.",
	 "O processo principal (%ld) está parado por um sinal: as imagens são armazenadas, mas nenhum caso continua."},
	{"The node cannot open its journal: %s. No case continues.",
	 "Der Knoten kann sein Journal nicht öffnen: %s. Kein Fall läuft weiter.",
	 "El nodo no puede abrir su registro de casos: %s. Ningún caso continúa.",
	 "O nó não consegue abrir seu registro de casos: %s. Nenhum caso continua."},
	{"The node may write no file of more than %.1f MB (ulimit -f, LimitFSIZE): larger objects are refused, cases with larger results are held, and the journal cannot grow beyond it.",
	 "Der Knoten darf keine Datei über %.1f MB schreiben (ulimit -f, LimitFSIZE): Größere Objekte werden abgelehnt, Fälle mit größeren Ergebnissen angehalten, und das Journal kann nicht darüber hinaus wachsen.",
	 "El nodo no puede escribir archivos de más de %.1f MB (ulimit -f, LimitFSIZE): se rechazan objetos mayores, se retienen los casos con resultados mayores, y el registro de casos no puede crecer más.",
	 "O nó não pode gravar arquivos de mais de %.1f MB (ulimit -f, LimitFSIZE): objetos maiores são recusados, casos com resultados maiores são retidos, e o registro de casos não pode crescer além disso."},
	{"The node rejects associations: %s.",
	 "Der Knoten weist Associations ab: %s.",
	 "El nodo rechaza asociaciones: %s.",
	 "O nó rejeita associações: %s."},
	{"The receiver can serve fewer associations than configured: %s.",
	 "Der Empfänger kann weniger Associations bedienen als konfiguriert: %s.",
	 "El receptor puede atender menos asociaciones que las configuradas: %s.",
	 "O receptor pode atender menos associações que as configuradas: %s."},
	{"The receiver cannot accept connections on every port: %s.",
	 "Der Empfänger kann nicht an jedem Port Verbindungen annehmen: %s.",
	 "El receptor no puede aceptar conexiones en todos los puertos: %s.",
	 "O receptor não pode aceitar conexões em todas as portas: %s."},
	{"The rows of a case cannot be read: %s. Cases of the same study or series wait, others go on.",
	 "Die Zeilen eines Falls können nicht gelesen werden: %s. Fälle derselben Studie oder Serie warten, andere laufen weiter.",
	 "No se pueden leer las filas de un caso: %s. Los casos del mismo estudio o serie esperan, los demás continúan.",
	 "As linhas de um caso não podem ser lidas: %s. Casos do mesmo estudo ou série esperam, os outros continuam."},
	{"The spool's disk cannot be used: %s.",
	 "Die Platte des Spools kann nicht benutzt werden: %s.",
	 "No se puede usar el disco del spool: %s.",
	 "O disco do spool não pode ser usado: %s."},
	{"The status page is not served: %s.",
	 "Die Statusseite wird nicht angeboten: %s.",
	 "La página de estado no se ofrece: %s.",
	 "A página de estado não é oferecida: %s."},
	{"What is shown of processes, ports and devices is old: %s/node.json could not be written for %.0f s.",
	 "Was von Prozessen, Ports und Geräten gezeigt wird, ist alt: %s/node.json konnte seit %.0f s nicht geschrieben werden.",
	 "Lo que se muestra de procesos, puertos y dispositivos es antiguo: %s/node.json no se pudo escribir desde hace %.0f s.",
	 "O que é mostrado de processos, portas e dispositivos é antigo: %s/node.json não pôde ser gravado há %.0f s."},
	{"between this case and case %lld of the same %s",
	 "zwischen diesem Fall und Fall %lld derselben %w",
	 "entre este caso y el caso %lld, de igual %w",
	 "entre este caso e o caso %lld, de igual %w"},
	{"between %s and %s", "zwischen %s und %s", "entre %s y %s", "entre %s e %s"},
	{"cancelled on the command line",
	 "auf der Kommandozeile abgebrochen",
	 "cancelado en la línea de órdenes",
	 "cancelado na linha de comando"},
	{"cancelled on the status page by %s",
	 "auf der Statusseite abgebrochen von %s",
	 "cancelado en la página de estado por %s",
	 "cancelado na página de estado por %s"},
	{"cancelled on the status page",
	 "auf der Statusseite abgebrochen",
	 "cancelado en la página de estado",
	 "cancelado na página de estado"},
	{"neither Patient ID %s nor Patient's Name %s shows that it is one patient %s",
	 "weder Patient ID %s noch Patient's Name %s zeigt, dass es ein Patient ist, %w",
	 "ni Patient ID %s ni Patient's Name %s muestran que es un solo paciente %w",
	 "nem Patient ID %s nem Patient's Name %s mostram que é um só paciente %w"},
	{"no CT series for the attenuation correction%s: send it, or reconstruct without it (retry --as-is)%s%s",
	 "keine CT-Serie für die Schwächungskorrektur%w: Senden Sie sie, oder rekonstruieren Sie ohne sie (retry --as-is)%w%w",
	 "no hay serie de TC para la corrección de atenuación%w: envíela, o reconstruya sin ella (retry --as-is)%w%w",
	 "não há série de TC para a correção de atenuação%w: envie-a, ou reconstrua sem ela (retry --as-is)%w%w"},
	{"sweep %d of %s: %d image with %s %s %s",
	 "Sweep %d von %s: %d Bild mit %s %s %s",
	 "barrido %d de %s: %d imagen con %s %s %s",
	 "varredura %d de %s: %d imagem com %s %s %s"},
	{"sweep %d of %s: %d images with %s %s %s",
	 "Sweep %d von %s: %d Bilder mit %s %s %s",
	 "barrido %d de %s: %d imágenes con %s %s %s",
	 "varredura %d de %s: %d imagens com %s %s %s"},
	{"sweep %d: %d image with %s %s %s",
	 "Sweep %d: %d Bild mit %s %s %s",
	 "barrido %d: %d imagen con %s %s %s",
	 "varredura %d: %d imagem com %s %s %s"},
	{"sweep %d: %d images with %s %s %s",
	 "Sweep %d: %d Bilder mit %s %s %s",
	 "barrido %d: %d imágenes con %s %s %s",
	 "varredura %d: %d imagens com %s %s %s"},
	{"the headers name different patients: %s differ %s",
	 "die Kopfdaten nennen verschiedene Patienten: %s unterscheiden sich %w",
	 "las cabeceras nombran pacientes distintos: %s difieren %w",
	 "os cabeçalhos indicam pacientes diferentes: %s diferem %w"},
	{"the headers name different patients: %s differs %s",
	 "die Kopfdaten nennen verschiedene Patienten: %s unterscheidet sich %w",
	 "las cabeceras nombran pacientes distintos: %s difiere %w",
	 "os cabeçalhos indicam pacientes diferentes: %s difere %w"},
	{"waits for the CT series for the attenuation correction, which is arriving%s%s",
	 "wartet auf die CT-Serie für die Schwächungskorrektur, die gerade eintrifft%w%w",
	 "espera la serie de TC para la corrección de atenuación, que está llegando%w%w",
	 "aguarda a série de TC para a correção de atenuação, que está chegando%w%w"},
	{"waits for the CT series for the attenuation correction%s%s",
	 "wartet auf die CT-Serie für die Schwächungskorrektur%w%w",
	 "espera la serie de TC para la corrección de atenuación%w%w",
	 "aguarda a série de TC para a correção de atenuação%w%w"},
	/* clang-format on */
};

static const char *const words[][LANGUAGES] = {
	/* clang-format off */
	{": it does no work", ": Er arbeitet nicht", ": no trabaja", ": ele não trabalha"},
	{": the node accepts no images",
	 ": Der Knoten nimmt keine Bilder an",
	 ": el nodo no acepta imágenes",
	 ": o nó não aceita imagens"},
	{": the node may accept no images",
	 ": Der Knoten nimmt vielleicht keine Bilder an",
	 ": puede que el nodo no acepte imágenes",
	 ": talvez o nó não aceite imagens"},
	{"case has", "Fall hat", "caso no ha encontrado", "caso não encontrou"},
	{"cases have", "Fälle haben", "casos no han encontrado", "casos não encontraram"},
	{"cases wait", "Fälle warten", "casos esperan", "casos aguardam"},
	{"image is", "Bild ist", "imagen está", "imagem está"},
	{"images are", "Bilder sind", "imágenes están", "imagens estão"},
	{"it", "es", "la", "a"},
	{"its", "seine", "sus", "seus"},
	{"no answer", "keine Antwort", "sin respuesta", "sem resposta"},
	{"object waits", "Objekt wartet", "objeto espera", "objeto aguarda"},
	{"objects wait", "Objekte warten", "objetos esperan", "objetos aguardam"},
	{"series", "Serie", "serie", "série"},
	{"study", "Studie", "estudio", "estudo"},
	{"the next case will wait", "der nächste Fall wird warten", "el próximo caso esperará", "o próximo caso aguardará"},
	{"their", "ihre", "sus", "seus"},
	{"them", "sie", "las", "as"},
	/* clang-format on */
};

/* What the protocols of conf/defaults.conf are for. */
static const char *const purposes[][LANGUAGES] = {
	/* clang-format off */
	{"for a fast preview, not for quantification",
	 "für eine schnelle Vorschau, nicht zur Quantifizierung",
	 "para una vista previa rápida, no para cuantificar",
	 "para uma prévia rápida, não para quantificar"},
	{"for a look at the projections", "für einen Blick auf die Projektionen", "para ver las proyecciones", "para ver as projeções"},
	{"for an overview, where time or space is short",
	 "für eine Übersicht, wenn Zeit oder Platz knapp ist",
	 "para una vista general, si falta tiempo o espacio",
	 "para uma visão geral, se falta tempo ou espaço"},
	{"for comparison", "zum Vergleich", "para comparar", "para comparação"},
	{"for few angles", "für wenige Winkel", "para pocos ángulos", "para poucos ângulos"},
	{"for few photons", "für wenige Photonen", "para pocos fotones", "para poucos fótons"},
	{"for quantification", "zur Quantifizierung", "para cuantificar", "para quantificação"},
	{"for reading", "zum Betrachten", "para la lectura", "para a leitura"},
	{"for reading, every ray alike",
	 "zum Betrachten, jeder Strahl gleich",
	 "para la lectura, todos los rayos por igual",
	 "para a leitura, todos os raios por igual"},
	{"for reading, of dense breasts",
	 "zum Betrachten dichter Brüste",
	 "para la lectura de mamas densas",
	 "para a leitura de mamas densas"},
	{"for reading, with the rim of the breast",
	 "zum Betrachten, mit dem Rand der Brust",
	 "para la lectura, con el borde de la mama",
	 "para a leitura, com a borda da mama"},
	{"for reading: faster than pet-mlem",
	 "zum Betrachten: schneller als pet-mlem",
	 "para la lectura: más rápido que pet-mlem",
	 "para a leitura: mais rápido que pet-mlem"},
	{"for sharp edges; masses are fainter",
	 "für scharfe Kanten; Herde sind schwächer",
	 "para bordes nítidos; las masas se ven más tenues",
	 "para bordas nítidas; as massas ficam mais tênues"},
	{"for studies: every detail of the detector, four times the size",
	 "für Studien: jede Einzelheit des Detektors, vierfache Größe",
	 "para estudios: todo el detalle del detector, cuatro veces el tamaño",
	 "para estudos: todo detalhe do detector, quatro vezes o tamanho"},
	{"the usual one", "das übliche", "el habitual", "o habitual"},
	/* clang-format on */
};

struct value {
	const char *text;
	size_t n;
};

/* Return the length of the conversion at the beginning of a format. */
static size_t conversion_length(const char *format)
{
	return 1 + strspn(format + 1, "0123456789.lz") + 1;
}

/* Write the values with which the format makes the text, the earlier ones as short as possible. false: it does not make it. */
static bool match_format(const char *format, const char *text, struct value *ret_values)
{
	const char *end;
	bool number;

	for (; *format && *format != '%'; format++, text++)
		if (*format != *text)
			return false;
	if (!*format)
		return !*text;
	end = format + conversion_length(format);
	number = end[-1] != 's';
	for (size_t n = 0;; n++) {
		*ret_values = (struct value){text, n};
		if ((n > 0 || !number) && match_format(end, text + n, ret_values + 1))
			return true;
		if (!text[n] || (number && !strchr("0123456789.", text[n])))
			return false;
	}
}

static const char *find_text(const char *const table[][LANGUAGES], size_t n, enum language in, const char *english)
{
	for (size_t i = 0; i < n && in != LANGUAGE_EN && (unsigned)in < LANGUAGES; i++)
		if (!strcmp(table[i][LANGUAGE_EN], english))
			return table[i][in];
	return english;
}
#define FIND_TEXT(table, in, english) find_text((table), sizeof(table) / sizeof((table)[0]), (in), (english))

const char *say_purpose(enum language in, const char *text)
{
	return FIND_TEXT(purposes, in, text);
}

static bool say_made(enum language in, const char *text, int depth, char *ret, size_t size);

/* Put the values into a translation. */
static void fill_format(enum language in, const char *format, const struct value *values, int depth, char *ret, size_t size)
{
	char value[VALUE_SIZE], said[VALUE_SIZE];
	const char *text;
	size_t n = 0;

	for (; *format && n + 1 < size; values++) {
		size_t plain = strcspn(format, "%");

		n += (size_t)snprintf(ret + n, size - n, "%.*s", (int)plain, format);
		format += plain;
		if (!*format || n + 1 >= size)
			break;
		format += conversion_length(format);
		snprintf(value, sizeof(value), "%.*s", (int)values->n, values->text);
		text = value;
		if (format[-1] == 'w')
			text = depth > 0 && say_made(in, value, depth - 1, said, sizeof(said)) ? said
											       : FIND_TEXT(words, in, value);
		n += (size_t)snprintf(ret + n, size - n, "%s", text);
	}
}

/* depth: of the values that may have a format. false: no format makes the text. */
static bool say_made(enum language in, const char *text, int depth, char *ret, size_t size)
{
	struct value values[VALUES_MAX + 1];

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (match_format(formats[i][LANGUAGE_EN], text, values)) {
			fill_format(in, formats[i][in], values, depth, ret, size);
			return true;
		}
	return false;
}

const char *say_sentence(enum language in, const char *text, char *ret, size_t size)
{
	const char *said = say(in, text);

	if (said != text || in == LANGUAGE_EN || (unsigned)in >= LANGUAGES)
		return said;
	return say_made(in, text, DEPTH, ret, size) ? ret : text;
}

const char *const *say_sentence_row(size_t i)
{
	const size_t n = sizeof(formats) / sizeof(formats[0]), n_words = n + sizeof(words) / sizeof(words[0]);

	return i < n						      ? formats[i]
	       : i < n_words					      ? words[i - n]
	       : i < n_words + sizeof(purposes) / sizeof(purposes[0]) ? purposes[i - n_words]
								      : NULL;
}
