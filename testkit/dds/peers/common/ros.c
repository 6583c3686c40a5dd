#include "ros.h"

#include <stdio.h>
#include <string.h>

const char *const MESSAGE_HASHES[MESSAGES] = {
    [HEALTH_STATUS] = "RIHS01_e85e23ad0982519d007664ecfc82d3df76436d258b2e3c93033322f67fc04fdf",
    [ALERT] = "RIHS01_e8e2ff57cba5b8ef8260a5438e31aed8fa51ac4517a327d40282213dc7d9abf4",
    [ALERT_ARRAY] = "RIHS01_e4da6b36ebb24c64c4e4337e122298bd4bc734b6e8e8a5c5f0dde10f6b9bc874",
    [SHUTDOWN_STATUS] = "RIHS01_635ed48167d2437ab5d88363750e750b9d5ad1b289f0f778bef84a12bc49c4cd",
    [DIAGNOSTIC_ARRAY] = "RIHS01_5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e",
};
const char REQUEST_HASH[] = "RIHS01_ec598925b510d980b4883fa022fa40e2af88a7dcfce87e2aa3852d49b1512123";
const char RESPONSE_HASH[] = "RIHS01_bb0dedd9c330de0538edf260a8b5dd7d81d38dfe1e82a70bff106352468029f8";
const char ENTITIES_HASH[] = "RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e";

const char PARTICIPANT_USER_DATA[] = "enclave=/;";

void endpoint_user_data(char *text, size_t room, enum ros ros, const char *before, const char *hash) {
  if (ros == ROS_HUMBLE) snprintf(text, room, "%s", before);
  else snprintf(text, room, "%stypehash=%s;", before, hash);
}

void client_user_data(char *text, size_t room, const uint8_t id[16]) {
  size_t used = (size_t)snprintf(text, room, "clientid=");
  for (int i = 0; i < 16; i++) used += (size_t)snprintf(text + used, room - used, i == 0 ? "%2x" : ".%x", id[i]);
  snprintf(text + used, room - used, ";");
}
